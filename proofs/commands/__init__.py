"""One module for each subcommand of ``residency``: its options and its exit code.

In go a command line and files; out come lines, files and an exit code. What is computed is computed
elsewhere. ``main`` lists the subcommands, ``options`` holds what several of them share. The only
room that knows all others.
"""
