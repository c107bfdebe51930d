"""How a stuck state shows when an engine runs its smallest prompt.

An engine that stops in another way does not confirm the theorem that says that it stops.
"""

from __future__ import annotations

from dataclasses import dataclass

_NOTHING = "gets a chunk of zero tokens without any refusal|nothing is asked for it"
_OWN = "room held by (its own|items that it asked for)"
_BUDGET = "budget spent on items that it asked for"


@dataclass(frozen=True)
class Sign:
    """What a run has to show.

    Attributes:
        claim: the claim that it breaks.
        mechanism: a regular expression that the mechanism contains.
    """

    claim: str
    mechanism: str


_STALLS = {
    "item-never-fits": f"(held by|spent on) nobody|{_NOTHING}",
    "whole-item-exceeds-chunk": _NOTHING,
    "neighbours-do-not-fit": f"{_OWN}|{_BUDGET}|{_NOTHING}",
    "encoder-budget-at-start": f"{_BUDGET}|{_NOTHING}",
    "reservation-after-cut": f"{_OWN}|{_BUDGET}|{_NOTHING}",
    "chunks-below-shift": _NOTHING,
    "reservation-against-alignment": f"{_NOTHING}|{_OWN}",
    "requests-wait-for-each-other": "room held by .*another (running|waiting) request",
}

SIGNS = {name: Sign("no-stall", mechanism) for name, mechanism in _STALLS.items()} | {
    "padded-decode-above-threshold": Sign("no-error", "schedule raises AssertionError")
}
"""By the name of the stuck state. The cache may refuse what the encoder budget would refuse as
well, and a cut can leave nothing before either is asked."""
