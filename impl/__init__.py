"""What runs: the code under test, and what is needed to run it.

In go cases of single functions and scenarios of whole runs; out come observations and steps, as
:mod:`impl.target` states them. Nothing here judges. Knows ``spec`` alone, and the reference engine
does not call the rules that judge it.

``target`` what everything under test implements; ``tensors`` rows that are told apart by their
values; ``harness`` the loop around every engine; ``reference`` our own engine; ``faults`` every
known fault as a switch over it; ``targets`` the reference, faulty or not, as a target; ``vllm`` the
real thing.
"""
