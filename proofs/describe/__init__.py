"""Cases, scenarios and results in words, on one line, for people.

In go data of ``spec``; out comes text that is safe for a terminal. Knows ``spec`` only, so that
every room above can use the same words.
"""
