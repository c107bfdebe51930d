"""Whether what is read is there, is the reader's own, and is kept for as long as it is needed.

In go a step and what came before it; out come findings on the book, the worker, the gathers and the
moments at which references go. Knows ``spec.history``.
"""
