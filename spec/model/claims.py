"""The claims that states and steps of the model show, as bits of a mask."""

from __future__ import annotations

from collections.abc import Iterator

CLAIMS = (
    "target-resident",
    "drafter-resident-or-boundary",
    "boundary-miss-tolerated",
    "interior-miss-raises",
    "boundary-used-when-resident",
    "need-agrees",
    "item-whole",
    "payload-available",
    "views-agree",
    "worker-bounded",
    "evicted-not-live",
    "dropped-in-update",
    "freed-not-needed",
    "held-until-last-use",
    "slots-conserved",
    "no-idle-references",
    "released",
    "counts-agree",
    "no-error",
    "work-conserving",
    "no-stall",
    "no-thrash",
)
"""Every claim that the model shows, in the order in which they are printed."""

_BIT = {claim: 1 << number for number, claim in enumerate(CLAIMS)}

TARGET_RESIDENT = _BIT["target-resident"]
DRAFTER_RESIDENT = _BIT["drafter-resident-or-boundary"]
BOUNDARY_TOLERATED = _BIT["boundary-miss-tolerated"]
INTERIOR_RAISES = _BIT["interior-miss-raises"]
BOUNDARY_USED = _BIT["boundary-used-when-resident"]
NEED_AGREES = _BIT["need-agrees"]
ITEM_WHOLE = _BIT["item-whole"]
PAYLOAD_AVAILABLE = _BIT["payload-available"]
VIEWS_AGREE = _BIT["views-agree"]
WORKER_BOUNDED = _BIT["worker-bounded"]
EVICTED_NOT_LIVE = _BIT["evicted-not-live"]
DROPPED_IN_UPDATE = _BIT["dropped-in-update"]
FREED_NOT_NEEDED = _BIT["freed-not-needed"]
HELD_UNTIL_LAST_USE = _BIT["held-until-last-use"]
SLOTS_CONSERVED = _BIT["slots-conserved"]
NO_IDLE_REFERENCES = _BIT["no-idle-references"]
RELEASED = _BIT["released"]
COUNTS_AGREE = _BIT["counts-agree"]
NO_ERROR = _BIT["no-error"]
WORK_CONSERVING = _BIT["work-conserving"]
NO_STALL = _BIT["no-stall"]
NO_THRASH = _BIT["no-thrash"]

NEEDS_SHIFT = DRAFTER_RESIDENT | NEED_AGREES
"""Claims that rest on the assumption ``scheduler-looks-as-far``."""


def claim_names(claims: int) -> Iterator[str]:
    """The ids of a set of claims."""
    return (claim for number, claim in enumerate(CLAIMS) if claims >> number & 1)
