"""The loop around every engine: one driver, one recorder of calls, one codec of rows.

In goes an engine that can schedule, execute and update a pass; out come the steps of a run
(``loop``), with the calls that its scheduler made (``calls``), what it held (``states``), and the
rows that its gathers returned (``rows``). What an engine decides is its own affair, and nothing
here judges it. Knows ``impl.target``, ``impl.tensors`` and the records of ``spec``.
"""
