"""Bisection: the places it finds, for any number of sorted keys.

The invariant is shown at an arbitrary index: keys before the range are smaller than the wanted
one, keys after it are not.
"""

from __future__ import annotations

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Formula
from proofs.smt.theorem import Group, changed, theorem, without
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.guards.scene import counts
from spec.algebra import BoolTerm, IntTerm, and_, eq, iff, implies, ite

GROUP = Group("bisection")

KEYS_INCREASE = "keys-increase"
HOLDS_BEFORE = "invariant-holds-before"
RANGE_NOT_EMPTY = "range-not-empty"
RANGE_EMPTY = "range-empty"


def _invariant(
    index: IntTerm, key: IntTerm, wanted: IntTerm, low: IntTerm, high: IntTerm
) -> BoolTerm:
    """What bisection keeps: keys before ``low`` are smaller, keys from ``high`` on are not."""
    return and_(implies(index < low, key < wanted), implies(index >= high, key >= wanted))


@theorem(
    GROUP,
    claim="window-exact",
    sentence="the whole list as range satisfies the bisection's invariant at every index",
    witness={"index": 1, "key": 4, "wanted": 3, "num_features": 2},
    ablations=(changed("first-skipped", low=1),),
)
def _starts(v: Vocabulary, low: int = 0) -> Formula:
    index, key, wanted, num_features = integers(v, "index key wanted num_features")
    return Formula(
        {"index-of-a-feature": and_(index >= 0, index < num_features)},
        _invariant(index, key, wanted, low, num_features),
    )


@theorem(
    GROUP,
    claim="window-exact",
    sentence="half of the sum of both ends, rounded down, lies in a range that is not empty",
    witness={"low": 0, "high": 3, "midpoint": 1},
    ablations=(without("range-empty", RANGE_NOT_EMPTY),),
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


@theorem(
    GROUP,
    claim="window-exact",
    sentence="one step of bisection keeps the invariant at every index and shortens the range",
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
        without("keys-fall", KEYS_INCREASE),
        without("invariant-forgotten", HOLDS_BEFORE),
        changed("midpoint-kept", skip_midpoint=0),
    ),
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


@theorem(
    GROUP,
    claim="window-exact",
    sentence="when the range is empty, exactly the keys before it are smaller",
    witness={"index": 0, "key": 2, "wanted": 3, "low": 1, "high": 1},
    ablations=(without("stopped-early", RANGE_EMPTY),),
)
def _ends(v: Vocabulary) -> Formula:
    index, key, wanted, low, high = integers(v, "index key wanted low high")
    return Formula(
        {RANGE_EMPTY: eq(low, high), HOLDS_BEFORE: _invariant(index, key, wanted, low, high)},
        iff(index < low, key < wanted),
        counts(index, low, high),
    )


if __name__ == "__main__":
    main_of_group(GROUP.name, GROUP.obligations)
