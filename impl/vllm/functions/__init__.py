"""TODO sign of impl/vllm/functions."""
