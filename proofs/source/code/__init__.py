"""A release's code, compiled piece by piece and run on plain or symbolic integers.

In goes its source; out come calls of its gathers, *free*, books and scheduler, with stand-ins for
what surrounds them (``recorders``, ``run_parts``). What a release renames is met here first. Judges
nothing.
"""
