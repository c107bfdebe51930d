"""What must hold of every run, and what is taken for granted. A sceptic reads this room first.

``predicates`` states the claims over the algebra, once for integers and solver terms; ``texts``
gives each its id, why it matters, a witness and the faults that must break it; ``assumptions`` says
what the claims rest on and shows what breaks without; ``witnesses`` holds the scenarios. Knows
``spec.rules``, and the records and cases that witnesses are.
"""
