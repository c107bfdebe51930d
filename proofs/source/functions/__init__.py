"""What single functions of a release must do, claim by claim, on every path.

In go symbolic cases; out come the conditions that ``proofs.source.ask`` settles: gathers, *free*,
books, and the searches of ranges. Knows ``proofs.source.code``.
"""
