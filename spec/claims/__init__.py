"""What must hold of every run, and what is taken for granted. A sceptic reads this room first.

``predicates`` states the claims over the algebra, once for ints and solver terms; ``on_functions``
and ``on_runs`` give each its id, its sentence, why it matters, its witness and the faults that must
break it; the files of assumptions say what breaks without each. Knows ``spec.rules``, and the
records and cases that witnesses are.
"""
