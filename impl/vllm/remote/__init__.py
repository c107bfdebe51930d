"""A vLLM in a process of its own, which is asked for what it does and judges nothing.

The code under test may be a stranger's. So it is imported by a child process alone (``child``),
which is given scenarios and cases and answers with steps and observations, as lines of JSON that
are checked as they are read (``messages``, ``pipes``). ``process`` starts it and puts questions,
``targets`` makes of it the targets that everything else knows. No pickle crosses that line, either
way.
"""
