"""From a release's number or a folder to its modules in this process.

``fetch`` downloads and unpacks, ``source`` says where the code lies and what its digest is,
``load`` imports it and lists every patch, ``worker_order`` reads from the source what a runner does
in a step. Knows ``spec`` and ``impl.target``.
"""
