"""The reference engine as a target: with the named faults, or with guards taken out.

In go names of faults, out comes what :mod:`impl.target` asks for: ``functions`` one call at a time,
``runs`` whole scenarios, ``ablation`` the engines of the ablation matrix. Knows ``impl.faults`` and
``impl.reference``.
"""
