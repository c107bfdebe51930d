"""Functions of a release, called one at a time: cases in, observations out.

``objects`` builds the release's own requests and features, ``gathers`` and ``books`` call what is
under test, ``target`` puts them together as :class:`impl.target.FunctionTarget`. Knows
``impl.vllm.launch``.
"""
