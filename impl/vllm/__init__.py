"""The real vLLM: its own code, run on CPU, offline and without being built.

``launch`` finds and loads a release's source, ``functions`` calls its functions one at a time,
``runs`` drives its scheduler, book and gathers in the loop, ``remote`` does so in a process of its
own, from which only observations come back. What is not as the release has it is
listed in :mod:`impl.vllm.launch.load`. Knows the harness, ``impl.target`` and ``impl.tensors``;
never the reference engine.
"""
