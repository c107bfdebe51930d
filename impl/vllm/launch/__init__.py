"""TODO sign of impl/vllm/launch."""
