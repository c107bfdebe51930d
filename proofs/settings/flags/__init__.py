"""From vLLM's arguments to the facts that the theorems on stuck states ask for.

In goes a command line or a file; out come settings, what was not looked at, and what is missing.
Knows ``proofs.settings.stuck``.
"""
