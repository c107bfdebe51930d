"""Every guard of the protocol, once, over an algebra of integers and solver terms.

In go integers or terms; out come integers, truth values or terms. The same text runs in the finite
model, is the oracle of the tests and of a release's source, and is what the solvers reason about:
a test walks the syntax tree of every module and refuses what would ask a solver term for its truth
value. By guard: ``geometry`` (windows, features, the search by bisection), ``encoder_inputs``
(what is asked for, and has room), ``chunk_ends``, ``turn`` (tokens wanted and emitted), ``free``
and ``tolerance``. ``stopping_passes``, ``stop_conditions`` and ``stop_settings`` say when a request
can never go on; ``releases`` is the table of what releases do. Knows ``spec.algebra`` and
``spec.errors`` only.
"""
