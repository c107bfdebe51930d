"""The ablation matrix: which of the protocol's guards are needed, alone and together."""
