"""What the command draws: by number, each from a seed of its own, so that one can be drawn alone.

Most draws keep every assumption. A few break one on purpose, so that what an engine owes even then
is put to the test; there, only the claims that do not rest on the assumption are judged. None rests
on a hash having one row count: an engine sees the other count and refuses its request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from proofs.search.runs.build import build_scenario
from proofs.search.runs.choices import SeededChoices
from proofs.search.runs.frame import LARGE, SMALL, Assumption, Trait
from proofs.search.runs.results import LoopCheckSettings, Mode
from spec.record.scenario import Scenario

_ROUND = 20
_BREAKING: Mapping[int, Assumption] = {
    4: "hash-has-one-row-count",
    9: "hash-has-one-row-count",
    19: "scheduler-looks-as-far",
}
"""Of each so many draws, those that break an assumption."""

_WITH: Mapping[int, Trait] = {8: "last chunks", 13: "last chunks", 17: "late closes"}
"""Of each so many draws, those with a trait on request."""

_JUDGED_WITHOUT: Mapping[Assumption, frozenset[str] | None] = {
    # The other rows are refused; what is left must be as sound as ever, under every claim.
    "hash-has-one-row-count": None,
    # The only way to a miss inside the processed range on an engine without another fault.
    "scheduler-looks-as-far": frozenset({"interior-miss-raises"}),
}
"""The claims that are judged where an assumption is broken; all of them where there is no set."""


@dataclass(frozen=True)
class Drawn:
    """A scenario and the claims that are judged on it; ``None`` for all claims."""

    scenario: Scenario
    only: frozenset[str] | None = None

    def judges(self, claim: str) -> bool:
        """Whether a finding under the claim counts."""
        return self.only is None or claim in self.only


def draw(settings: LoopCheckSettings, number: int) -> Drawn:
    """The draw with a number.

    Args:
        settings: seed, how often a scenario is large, assumptions that all may break, and the mode.
        number: counts draws from 0.
    """
    drawn = _draw(settings, number)
    return replace(drawn, scenario=_in_mode(drawn.scenario, settings.mode))


def _in_mode(scenario: Scenario, mode: Mode) -> Scenario:
    depth = scenario.config.async_depth
    if mode == "sync":
        depth = 0
    elif mode == "async":
        depth = max(1, depth)
    return replace(scenario, config=replace(scenario.config, async_depth=depth))


def _draw(settings: LoopCheckSettings, number: int) -> Drawn:
    choices = SeededChoices(Random(f"{settings.seed} {number}"))  # noqa: S311 - no secret
    if settings.breaks:
        return Drawn(build_scenario(choices, SMALL, settings.breaks))
    if settings.large_every and number % settings.large_every == settings.large_every - 1:
        return Drawn(build_scenario(choices, LARGE))
    broken = _BREAKING.get(number % _ROUND)
    if broken is None:
        trait = _WITH.get(number % _ROUND)
        wanted = frozenset() if trait is None else frozenset({trait})
        return Drawn(build_scenario(choices, SMALL, frozenset(), wanted))
    return Drawn(build_scenario(choices, SMALL, frozenset({broken})), _JUDGED_WITHOUT[broken])
