"""``lint-config``: can an engine with these settings stand still for ever?

In go a ``vllm serve`` line (``flags``) and the theorems on stuck states (``stuck``); out come a
verdict, the smallest prompt that stalls, and what to change (``judge``). Knows ``spec`` and runs
nothing.
"""
