"""Every known fault as a named switch over the reference implementation: one small override each.

A switch turns a correct implementation into one with exactly that fault, so that a claim that
cannot see it is known to be blind. Numbers are public pull requests and issues of vLLM.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from impl.faults.fault import Fault
from impl.faults.on_functions import FUNCTION_FAULTS
from impl.faults.on_runs import LOOP_FAULTS
from impl.reference.parts import Parts
from spec.errors import InputError

FAULTS: tuple[Fault, ...] = (*FUNCTION_FAULTS, *LOOP_FAULTS)

BY_NAME: dict[str, Fault] = {fault.name: fault for fault in FAULTS}


def fault(name: str) -> Fault:
    """The fault with the given name.

    Raises:
        InputError: there is none; the message lists those that exist.
    """
    known = BY_NAME.get(name)
    if known is None:
        raise InputError(f"unknown fault {name!r}; known faults: {', '.join(sorted(BY_NAME))}")
    return known


def faulty_parts(names: Iterable[str]) -> Parts:
    """The reference's parts with the named faults, all active together.

    Raises:
        InputError: an unknown fault; the message lists those that exist.
    """
    switches = [fault(name) for name in sorted(names)]
    return reduce(lambda parts, switch: switch.apply(parts), switches, Parts())
