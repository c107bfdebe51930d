"""Run plain Python code on symbolic integers and enumerate every feasible path.

In go a function and integers that stand for all numbers (``integers``); out comes the tree of its
paths, each with the condition under which it is taken (``exploration``, ``tree``). What is not
modelled is said, never passed over. Knows z3 and
``spec.algebra``.
"""
