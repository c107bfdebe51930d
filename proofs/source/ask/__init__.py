"""One question about a release's source, put to both solvers.

In go a condition and the paths of the code; out comes a verdict, with a counterexample that is made
small and run again on plain integers. Knows ``proofs.source.code``.
"""
