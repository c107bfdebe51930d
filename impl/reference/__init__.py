"""Our own engine: written the way an engine would be, so that agreeing with it means something.

In goes a scenario, out come steps (``engine``). ``scheduling`` decides, ``worker`` holds the
tensors and gathers; ``parts`` lists every class and function that a fault can replace. Knows the
harness, ``impl.target``, ``impl.tensors`` and the records of ``spec``, and none of the rules that
judge it.
"""
