"""The loop as a transition system on integers: fast, plain, and without any engine's code.

In go a scenario, or a layout and choices; out come states, what each pass and update did, and the
claims that they break. ``schedule`` and ``update`` are the two transitions, on a state that
``working`` takes apart; ``judge`` looks at a step with the claims of ``spec.claims``; ``run`` takes
the world's answers from a scenario; ``seen`` writes steps as a trace has them, which the monitor
judges too (``agreement``). Knows all other rooms of ``spec`` but the relation, and calls the rules.
"""
