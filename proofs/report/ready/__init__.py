"""Tests to paste: for vLLM's own suite, and for this project's.

In go a finding and the code that it was found on; out comes a file that imports nothing of this
project, from the templates beside this folder, or the reason why no test can stand alone.
"""
