"""One scenario, run and judged.

In go a target, a scenario and a runner; out come the trace and the findings of the monitor
(``record``, ``judge``). ``targets`` says what the options of a command name, ``digest`` whether two
runs are the same. Knows ``impl`` and ``spec``.
"""
