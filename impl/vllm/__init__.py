"""Published releases of vLLM, fetched, loaded on CPU and called one function at a time."""
