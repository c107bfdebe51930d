"""What a fault switch is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from impl.reference.parts import Parts
from impl.target import Runner
from spec.record.scenario import Scenario


@dataclass(frozen=True)
class Fault:
    """A switch.

    Attributes:
        name: what it is called on command lines and in claims.
        sentence: what goes wrong.
        public: where it was reported or fixed, or why it has no number.
        apply: makes the parts with the fault from parts without it.
        breaks: ids of all claims that it breaks at function level, and no others.
        breaks_in_loop: ids of all claims that ``scenario`` shows broken in the loop, and no others.
        may_also_break: ids of the further claims that it breaks in other scenarios; a scenario
            breaks no claim that is in neither of the two.
        why_several: why one scenario cannot do with one claim, or another one breaks more; empty
            where neither is so.
        scenario: the smallest known scenario that shows it in the loop; ``None`` where nothing
            shows there.
        without: id of the assumption (:mod:`spec.claims.on_runs_assumptions`) that the scenario
            breaks, since the fault shows only then; claims that rest on it are not judged. Empty
            for none.
        not_in_loop: why nothing shows in the loop; empty where something does.
        runner: the only runner that shows it in the loop; ``None`` where both do.
    """

    name: str
    sentence: str
    public: str
    apply: Callable[[Parts], Parts]
    breaks: tuple[str, ...] = ()
    breaks_in_loop: tuple[str, ...] = ()
    may_also_break: tuple[str, ...] = ()
    why_several: str = ""
    scenario: Scenario | None = None
    without: str = ""
    not_in_loop: str = ""
    runner: Runner | None = None
