"""What a drafter reads after one pass: which guards keep it from a missing feature.

The premise ``asked-or-refused`` is what a pass leaves behind, however many requests and features
there are: a feature with a row in the window that scheduling looked at is on the worker, or it was
refused, and the chunk ends the cut's shift before it. The relation's theorems show that passes
keep to it where the cut is not shifted; that a shifted cut ends as much earlier is the rule
:func:`spec.rules.chunk_ends.refused_cut` itself. Here it is used, for the cells of the ablation
matrix.
"""

from __future__ import annotations

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Formula
from proofs.smt.theorem import Group, theorem, without
from proofs.smt.vocabulary import Vocabulary
from proofs.theorems.guards.scene import (
    Span,
    Step,
    a_span,
    a_step,
    at_boundary,
    counts,
    inside,
    realistic,
)
from spec.algebra import BoolTerm, IntTerm, and_, implies, max_, or_
from spec.rules.encoder_inputs import window_end

GROUP = Group("reading")

LOOKS_AS_FAR = "scheduler-looks-as-far"
ASKED_OR_REFUSED = "asked-or-refused"
POSITION_READ = "position-takes-a-row-and-is-read"
CUT_NOT_LATE = "chunk-not-cut-late"


class _Pass:
    """One pass at one feature, and one position of it that takes a row and is read."""

    def __init__(self, v: Vocabulary) -> None:
        self.step: Step = a_step(v)
        self.span: Span = a_span(v)
        self.position: IntTerm = v.integer("position")
        self.shift: IntTerm = v.integer("scheduler_lookahead")
        self.cut_shift: IntTerm = v.integer("cut_shift")
        self.resident: BoolTerm = v.boolean("resident")

    def asked_or_refused(self, position: IntTerm) -> BoolTerm:
        """What the pass leaves behind, if that position takes a row."""
        step = self.step
        window = step.computed, window_end(step.computed, step.scheduled, self.shift)
        refused = step.end + self.cut_shift <= self.span.offset
        return implies(inside(position, window), or_(self.resident, refused))

    @property
    def position_read(self) -> BoolTerm:
        """The drafter reads the position, and it lies in the feature."""
        return and_(
            inside(self.position, (self.span.offset, self.span.end)),
            inside(self.position, self.step.drafter),
        )

    @property
    def realistic(self) -> BoolTerm:
        """Counts as an engine has them."""
        return and_(realistic(self.span, self.step), counts(self.shift))


_WITNESS = {
    "num_computed_tokens": 0,
    "num_scheduled_tokens": 4,
    "look_ahead": 1,
    "scheduler_lookahead": 1,
    "cut_shift": 0,
    "offset": 2,
    "length": 4,
    "position": 3,
    "resident": True,
}


@theorem(
    GROUP,
    claim="drafter-resident-or-boundary",
    sentence="a drafter that reads no further ahead than scheduling looks finds each row "
    "resident, or at the boundary",
    witness=_WITNESS,
    ablations=(
        without("nothing asked for", ASKED_OR_REFUSED),
        without("the drafter reads further", LOOKS_AS_FAR),
        without("a chunk that is cut late", CUT_NOT_LATE),
    ),
)
def _shift_covers_the_drafter(v: Vocabulary) -> Formula:
    read = _Pass(v)
    return Formula(
        {
            ASKED_OR_REFUSED: read.asked_or_refused(read.position),
            LOOKS_AS_FAR: read.step.look_ahead <= read.shift,
            "look-ahead-not-negative": read.step.look_ahead >= 0,
            POSITION_READ: read.position_read,
            CUT_NOT_LATE: read.cut_shift >= 0,
        },
        or_(read.resident, at_boundary(read.span, read.step)),
        read.realistic,
    )


@theorem(
    GROUP,
    claim="boundary-miss-tolerated",
    sentence="where chunks also end as far before a refused feature as the drafter reads "
    "ahead, it meets no missing row at all, and tolerance is not needed",
    witness={**_WITNESS, "cut_shift": 1},
    ablations=(
        without("a chunk that ends at the feature", "cut-as-far-as-the-look-ahead"),
        without("the drafter reads further", LOOKS_AS_FAR),
    ),
)
def _shifted_cut_needs_no_tolerance(v: Vocabulary) -> Formula:
    read = _Pass(v)
    return Formula(
        {
            ASKED_OR_REFUSED: read.asked_or_refused(read.position),
            LOOKS_AS_FAR: read.step.look_ahead <= read.shift,
            "look-ahead-not-negative": read.step.look_ahead >= 0,
            POSITION_READ: read.position_read,
            "cut-as-far-as-the-look-ahead": read.step.look_ahead <= read.cut_shift,
        },
        read.resident,
        read.realistic,
    )


@theorem(
    GROUP,
    claim="target-resident",
    sentence="what the target reads, and a drafter without a look-ahead, is resident whatever "
    "the shift, the cut's shift and the tolerance are",
    witness=_WITNESS,
    ablations=(
        without("nothing asked for", ASKED_OR_REFUSED),
        without("a chunk that is cut late", CUT_NOT_LATE),
    ),
)
def _target_needs_no_guard(v: Vocabulary) -> Formula:
    read = _Pass(v)
    return Formula(
        {
            ASKED_OR_REFUSED: read.asked_or_refused(read.position),
            "shift-not-negative": read.shift >= 0,
            "position-takes-a-row-and-is-processed": and_(
                inside(read.position, (read.span.offset, read.span.end)),
                inside(read.position, read.step.target),
            ),
            CUT_NOT_LATE: read.cut_shift >= 0,
        },
        read.resident,
        read.realistic,
    )


@theorem(
    GROUP,
    claim="drafter-resident-or-boundary",
    sentence="of features without a mask the drafter meets no missing row but at the boundary "
    "even if scheduling does not look ahead",
    witness=_WITNESS,
    ablations=(
        without("a chunk that is cut late", CUT_NOT_LATE),
        without("nothing asked for", "dense-and-asked-or-refused"),
    ),
)
def _dense_needs_no_shift(v: Vocabulary) -> Formula:
    read = _Pass(v)
    # All positions of a dense feature take a row, so the first that is not yet computed does.
    first = max_(read.span.offset, read.step.computed)
    return Formula(
        {
            "dense-and-asked-or-refused": implies(
                first < read.span.end, read.asked_or_refused(first)
            ),
            "shift-not-negative": read.shift >= 0,
            "look-ahead-not-negative": read.step.look_ahead >= 0,
            POSITION_READ: read.position_read,
            CUT_NOT_LATE: read.cut_shift >= 0,
        },
        or_(read.resident, at_boundary(read.span, read.step)),
        read.realistic,
    )


if __name__ == "__main__":
    main_of_group(GROUP.name, GROUP.obligations)
