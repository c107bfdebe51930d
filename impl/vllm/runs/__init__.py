"""A release in the closed loop: scenarios in, steps out.

``config`` makes its scheduler, ``requests`` and ``results`` its objects, ``runners`` and ``rows``
the worker's side, ``world`` and ``connector`` answer for what lies outside; ``engine`` gives them
to the harness and ``target`` is the whole as :class:`impl.target.LoopTarget`. Knows
``impl.vllm.launch`` and ``impl.vllm.functions``.
"""
