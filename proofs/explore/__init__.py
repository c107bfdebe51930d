"""Exhaustive search of small scopes on the model, in lockstep with a target."""
