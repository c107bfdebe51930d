"""Long work: side by side in processes, with a bar, an interrupt and an end that says what it was.

In go functions and their arguments; out come answers, or why there are none. Knows nothing of what
is computed.
"""
