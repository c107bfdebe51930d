"""Every guard of the protocol, once, over an algebra of integers and solver terms.

In go integers or terms; out come integers, truth values or terms: ``geometry`` (windows and
features), ``free`` (*may_drop_reference*, tolerance), ``scheduling`` (where a chunk ends),
``releases`` (what releases differ in), and the ``stop...`` files (when a request can never go on).
Knows ``spec.algebra`` only.
"""
