"""TODO sign of impl/vllm/runs."""
