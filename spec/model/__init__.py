"""The loop as a transition system on integers: fast, plain, and without any engine's code."""
