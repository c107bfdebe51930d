"""Bisection: the places it finds, for any number of sorted keys.

The invariant is shown at an arbitrary index: keys before the range are smaller than the wanted
one, keys after it are not.
"""

from __future__ import annotations

from functools import partial

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Ablation, Formula, Obligation
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.guards.scene import counts
from spec.algebra import BoolTerm, IntTerm, and_, eq, iff, implies, ite

GROUP = "bisection"

KEYS_INCREASE = "keys-increase"
HOLDS_BEFORE = "invariant-holds-before"
RANGE_NOT_EMPTY = "range-not-empty"
RANGE_EMPTY = "range-empty"


def _invariant(
    index: IntTerm, key: IntTerm, wanted: IntTerm, low: IntTerm, high: IntTerm
) -> BoolTerm:
    """What bisection keeps: keys before ``low`` are smaller, keys from ``high`` on are not."""
    return and_(implies(index < low, key < wanted), implies(index >= high, key >= wanted))


def _starts(v: Vocabulary, low: int = 0) -> Formula:
    index, key, wanted, num_features = integers(v, "index key wanted num_features")
    return Formula(
        {"index-of-a-feature": and_(index >= 0, index < num_features)},
        _invariant(index, key, wanted, low, num_features),
    )


def _midpoint_in_range(v: Vocabulary) -> Formula:
    low, high, midpoint = integers(v, "low high midpoint")
    return Formula(
        {
            RANGE_NOT_EMPTY: low < high,
            "half-rounded-down": and_(2 * midpoint <= low + high, low + high <= 2 * midpoint + 1),
        },
        and_(low <= midpoint, midpoint < high),
    )


def _step(v: Vocabulary, skip_midpoint: int = 1) -> Formula:
    low, high, midpoint, index = integers(v, "low high midpoint index")
    key, key_at_midpoint, wanted = integers(v, "key key_at_midpoint wanted")
    smaller = key_at_midpoint < wanted
    new_low = ite(smaller, midpoint + skip_midpoint, low)
    new_high = ite(smaller, high, midpoint)
    return Formula(
        {
            "midpoint-in-range": and_(low <= midpoint, midpoint < high),
            KEYS_INCREASE: and_(
                implies(index <= midpoint, key <= key_at_midpoint),
                implies(midpoint <= index, key_at_midpoint <= key),
            ),
            HOLDS_BEFORE: _invariant(index, key, wanted, low, high),
        },
        and_(
            _invariant(index, key, wanted, new_low, new_high),
            low <= new_low,
            new_low <= new_high,
            new_high <= high,
            new_high - new_low < high - low,
        ),
        counts(low, index),
    )


def _ends(v: Vocabulary) -> Formula:
    index, key, wanted, low, high = integers(v, "index key wanted low high")
    return Formula(
        {
            RANGE_EMPTY: eq(low, high),
            HOLDS_BEFORE: _invariant(index, key, wanted, low, high),
        },
        iff(index < low, key < wanted),
        counts(index, low, high),
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        claim="window-exact",
        group=GROUP,
        short_name="starts",
        sentence="the whole list as range satisfies the bisection's invariant at every index",
        build=_starts,
        witness={"index": 1, "key": 4, "wanted": 3, "num_features": 2},
        ablations=(Ablation("first-skipped", build=partial(_starts, low=1)),),
    ),
    Obligation(
        claim="window-exact",
        group=GROUP,
        short_name="midpoint-in-range",
        sentence="half of the sum of both ends, rounded down, lies in a range that is not empty",
        build=_midpoint_in_range,
        witness={"low": 0, "high": 3, "midpoint": 1},
        ablations=(Ablation("range-empty", drops=(RANGE_NOT_EMPTY,)),),
    ),
    Obligation(
        claim="window-exact",
        group=GROUP,
        short_name="step",
        sentence="one step of bisection keeps the invariant at every index and shortens the range",
        build=_step,
        witness={
            "low": 0,
            "high": 3,
            "midpoint": 1,
            "index": 0,
            "key": 2,
            "key_at_midpoint": 4,
            "wanted": 5,
        },
        ablations=(
            Ablation("keys-fall", drops=(KEYS_INCREASE,)),
            Ablation("invariant-forgotten", drops=(HOLDS_BEFORE,)),
            Ablation("midpoint-kept", build=partial(_step, skip_midpoint=0)),
        ),
    ),
    Obligation(
        claim="window-exact",
        group=GROUP,
        short_name="ends",
        sentence="when the range is empty, exactly the keys before it are smaller",
        build=_ends,
        witness={"index": 0, "key": 2, "wanted": 3, "low": 1, "high": 1},
        ablations=(Ablation("stopped-early", drops=(RANGE_EMPTY,)),),
    ),
)


if __name__ == "__main__":
    main_of_group(GROUP, OBLIGATIONS)
