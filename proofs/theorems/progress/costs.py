"""What the two halves of pull request 46315 cost: rows held longer, and rows not drafted with.

A margin keeps a reference for exactly the margin's tokens of progress more, and so a request holds
at most the largest item's rows and the margin less one more than without (``margin-costs``,
``rows-in-reach``). A tolerated miss leaves exactly those rows to their token embeddings that the
drafter reads past the processed end, never more than its look-ahead (``tolerance-costs``).
"""

from __future__ import annotations

from proofs.smt.obligation import Formula
from proofs.smt.theorem import Group, changed, theorem, without
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.guards.scene import LOOK_AHEAD_NOT_NEGATIVE
from proofs.theorems.progress.scene import NAME
from spec.algebra import and_, eq, iff, implies, max_, min_, not_
from spec.rules import geometry, tolerance
from spec.rules.stopping_passes import Item, is_still_held

PART = Group(NAME)


@theorem(
    PART,
    claim="held-until-last-use",
    sentence="a margin holds a reference longer exactly while progress is less than the margin "
    "past the item's end",
    witness={"offset": 0, "length": 4, "num_computed_tokens": 4, "margin": 1},
    ablations=(changed("one-token-less", less=1),),
)
def _margin_costs(v: Vocabulary, less: int = 0) -> Formula:
    offset, length, progress, margin = integers(v, "offset length num_computed_tokens margin")
    item = Item(offset, length, 0)
    longer = and_(is_still_held(item, margin, progress), not_(is_still_held(item, 0, progress)))
    return Formula(
        {},
        iff(longer, and_(progress >= item.end, progress < item.end + margin - less)),
        and_(offset >= 0, length >= 1, progress >= 0, margin >= 0),
    )


@theorem(
    PART,
    claim="boundary-miss-tolerated",
    sentence="a tolerated miss leaves to token embeddings the positions that the drafter reads "
    "of the feature, at most its look-ahead, and none of a feature that starts further ahead",
    witness={
        "offset": 4,
        "length": 4,
        "num_computed_tokens": 0,
        "num_scheduled_tokens": 4,
        "look_ahead": 1,
    },
    ablations=(
        changed("inside-too", tolerates_inside=True),
        without("drafter-looks-back", LOOK_AHEAD_NOT_NEGATIVE),
    ),
)
def _tolerance_costs(v: Vocabulary, tolerates_inside: bool = False) -> Formula:
    """A dense feature that the drafter's gather skips, and what it reads of it."""
    offset, length, computed, scheduled, look_ahead = integers(
        v, "offset length num_computed_tokens num_scheduled_tokens look_ahead"
    )
    start, end = geometry.drafter_window(computed, scheduled, look_ahead)
    processed = geometry.processed_end(computed, scheduled)
    low, high = geometry.slice_bounds(offset, length, start, end)
    lost = max_(high - low, 0)
    tolerated = tolerance.miss_tolerated_v1(offset, computed, scheduled)
    if tolerates_inside:
        tolerated = offset >= processed - 1
    ahead = max_(min_(offset + length, end) - max_(offset, start), 0)
    return Formula(
        {"miss-tolerated": tolerated, LOOK_AHEAD_NOT_NEGATIVE: look_ahead >= 0},
        and_(
            eq(lost, ahead), lost <= look_ahead, implies(lost >= 1, offset < processed + look_ahead)
        ),
        and_(offset >= 0, length >= 1, computed >= 0, scheduled >= 1),
    )
