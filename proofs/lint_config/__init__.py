"""Whether an engine's settings let it stand still for ever, from the theorems on stuck states."""
