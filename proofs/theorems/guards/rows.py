"""Rows: positions of a masked feature versus rows of its encoder output.

A mask is modelled by its prefix count (:class:`proofs.smt.vocabulary.PrefixCount`); every
counterexample is replayed on a real mask.
"""

from __future__ import annotations

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Formula
from proofs.smt.theorem import Group, changed, theorem, without
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.guards.scene import (
    LOOK_AHEAD_NOT_NEGATIVE,
    PREFILL_WITNESS,
    Step,
    a_span,
    a_step,
    at_boundary,
    counts,
    inside,
    realistic,
)
from spec.algebra import BoolTerm, IntTerm, and_, eq, ite, not_
from spec.rules import geometry

GROUP = Group("rows")

NOT_TURNED_ROUND = "range-not-turned-round"
TAKES_ROW = "position-takes-a-row"
INSIDE_RANGE = "position-in-range"
NEXT_STEP_CONTINUES = "next-step-continues"
DENSE = "every-position-takes-a-row"
FIRST_TAKES_ROW = "first-position-takes-a-row"
STARTS_INSIDE = "feature-starts-in-processed-range"
STARTS_BEFORE_END = "feature-starts-before-processed-end"
DRAFTER_READS = "drafter-reads-a-row"


_MASK = (True, False, True, True)


@theorem(
    GROUP,
    claim="row-range-exact",
    sentence="the rows of a range of positions lie in the encoder output, in order",
    witness={"start": 1, "end": 3, "length": 4, "is_embed": _MASK},
    ablations=(without("range-turned-round", NOT_TURNED_ROUND),),
)
def _range_in_output(v: Vocabulary) -> Formula:
    start, end, length = integers(v, "start end length")
    mask = v.mask("is_embed", length)
    first, last = geometry.row_range(mask, start, end)
    return Formula(
        {NOT_TURNED_ROUND: start <= end},
        and_(first >= 0, first <= last, last <= mask(length)),
        counts(start, end, length - start, length - end),
    )


@theorem(
    GROUP,
    claim="row-range-exact",
    sentence="an empty range of positions takes no row, at the mask's start too",
    witness={"start": 0, "end": 0, "length": 4, "is_embed": _MASK},
    ablations=(changed("negative-index", negative_index=True),),
)
def _empty_range_has_no_row(v: Vocabulary, negative_index: bool = False) -> Formula:
    """Rows before a position are looked up in cumulative sums at the position before it.

    At position 0 that index is -1, which Python takes for the last entry: all rows.
    """
    start, end, length = integers(v, "start end length")
    mask = v.mask("is_embed", length)

    def looked_up(position: IntTerm) -> IntTerm:
        return ite(eq(position, 0), mask(length), mask(position))

    first, last = geometry.row_range(mask, start, end)
    if negative_index:
        last = looked_up(end)
    return Formula(
        {"range-empty": eq(start, end)}, eq(first, last), counts(start, end - start, length - end)
    )


@theorem(
    GROUP,
    claim="row-range-exact",
    sentence="a range that grows by a position grows by one row if the mask is true there, "
    "else by none: with the empty range, rows are counted",
    witness={"start": 0, "end": 2, "length": 4, "is_embed": _MASK},
    ablations=(changed("mask-ignored", dense=True),),
)
def _one_row_for_each_true(v: Vocabulary, dense: bool = False) -> Formula:
    start, end, length = integers(v, "start end length")
    mask = v.mask("is_embed", length)
    first, last = geometry.row_range(mask, start, end)
    longer_first, longer_last = geometry.row_range(mask, start, end + 1)
    is_true = 1 if dense else ite(mask.takes_row_at(end), 1, 0)
    return Formula(
        {},
        eq(longer_last - longer_first, last - first + is_true),
        counts(start, end - start, length - end - 1),
    )


@theorem(
    GROUP,
    claim="rows-exact",
    sentence="the row of every true position of a range is among the range's rows",
    witness={"start": 1, "end": 3, "length": 4, "position": 2, "is_embed": _MASK},
    ablations=(without("position-is-text", TAKES_ROW), without("position-elsewhere", INSIDE_RANGE)),
)
def _row_of_position_in_range(v: Vocabulary) -> Formula:
    start, end, length, position = integers(v, "start end length position")
    mask = v.mask("is_embed", length)
    first, last = geometry.row_range(mask, start, end)
    row = mask(position)
    return Formula(
        {INSIDE_RANGE: inside(position, (start, end)), TAKES_ROW: mask.takes_row_at(position)},
        and_(first <= row, row < last),
        counts(start, end - start, length - end),
    )


@theorem(
    GROUP,
    claim="rows-exact",
    sentence="a true position and a later one have different rows, in order",
    witness={"position": 0, "later_position": 2, "length": 4, "is_embed": _MASK},
    ablations=(without("position-is-text", TAKES_ROW),),
)
def _rows_are_distinct(v: Vocabulary) -> Formula:
    position, later, length = integers(v, "position later_position length")
    mask = v.mask("is_embed", length)
    return Formula(
        {"later": position < later, TAKES_ROW: mask.takes_row_at(position)},
        mask(position) < mask(later),
        and_(counts(position, length - later - 1), mask.takes_row_at(later)),
    )


@theorem(
    GROUP,
    claim="row-range-exact",
    sentence="the rows of two adjacent ranges are those of the whole, none twice, none left out",
    witness={"start": 0, "middle": 2, "resumed": 2, "end": 4, "length": 4, "is_embed": _MASK},
    ablations=(without("gap-between", "ranges-adjacent"),),
)
def _adjacent_ranges_compose(v: Vocabulary) -> Formula:
    start, middle, resumed, end, length = integers(v, "start middle resumed end length")
    mask = v.mask("is_embed", length)
    first, between = geometry.row_range(mask, start, middle)
    onward, last = geometry.row_range(mask, resumed, end)
    whole = geometry.row_range(mask, start, end)
    return Formula(
        {"ranges-adjacent": eq(middle, resumed)},
        and_(eq(between, onward), eq(whole[1] - whole[0], (between - first) + (last - onward))),
        counts(start, middle - start, resumed - middle, end - resumed, length - end),
    )


@theorem(
    GROUP,
    claim="rows-exact",
    sentence="the next step reads on at the row after the last one of this step",
    witness={
        **PREFILL_WITNESS,
        "next_num_computed_tokens": 4,
        "next_num_scheduled_tokens": 4,
        "offset": 3,
        "length": 4,
        "is_embed": _MASK,
    },
    ablations=(without("progress-skips", NEXT_STEP_CONTINUES),),
)
def _steps_compose(v: Vocabulary) -> Formula:
    step, span = a_step(v), a_span(v)
    computed, scheduled = integers(v, "next_num_computed_tokens next_num_scheduled_tokens")
    following = Step(computed, scheduled, step.look_ahead)
    mask = v.mask("is_embed", span.length)

    def rows_of(each: Step) -> geometry.Window:
        part = geometry.slice_bounds(span.offset, span.length, *each.drafter)
        return geometry.row_range(mask, *part)

    def selected(each: Step) -> BoolTerm:
        return geometry.overlaps(span.offset, span.length, *each.drafter)

    return Formula(
        {NEXT_STEP_CONTINUES: eq(following.computed, step.end)},
        eq(rows_of(step)[1], rows_of(following)[0]),
        and_(
            realistic(span, step),
            following.scheduled >= 1,
            step.end <= following.computed,
            selected(step),
            selected(following),
        ),
    )


@theorem(
    GROUP,
    claim="interior-miss-raises",
    sentence="of a dense feature that starts before the processed end, the target reads a row "
    "whenever the drafter does: such a miss is the target's miss too",
    witness={**PREFILL_WITNESS, "offset": 2, "length": 4, "is_embed": (True,) * 4},
    ablations=(without("masked-feature", DENSE), without("boundary-feature", STARTS_BEFORE_END)),
)
def _interior_miss_is_targets(v: Vocabulary) -> Formula:
    step, span = a_step(v), a_span(v)
    mask = v.mask("is_embed", span.length)
    return Formula(
        {
            LOOK_AHEAD_NOT_NEGATIVE: step.look_ahead >= 0,
            STARTS_BEFORE_END: not_(at_boundary(span, step)),
            DENSE: eq(mask(span.length), span.length),
            DRAFTER_READS: mask.rows_in(span.offset, *step.drafter) >= 1,
        },
        mask.rows_in(span.offset, *step.target) >= 1,
        and_(span.offset >= 0, step.computed >= 0, step.scheduled >= 1, span.length >= 1),
    )


@theorem(
    GROUP,
    claim="drafter-resident-or-boundary",
    sentence="of a feature that starts in the processed range with a row, the target reads a "
    "row; where the first position takes none, the first row can be the drafter's alone",
    witness={**PREFILL_WITNESS, "offset": 2, "length": 4, "is_embed": _MASK},
    ablations=(
        without("first-position-masked", FIRST_TAKES_ROW),
        without("starts-elsewhere", STARTS_INSIDE),
    ),
)
def _starting_inside_is_targets(v: Vocabulary) -> Formula:
    step, span = a_step(v), a_span(v)
    mask = v.mask("is_embed", span.length)
    return Formula(
        {
            STARTS_INSIDE: and_(step.computed <= span.offset, not_(at_boundary(span, step))),
            FIRST_TAKES_ROW: mask.takes_row_at(0),
        },
        mask.rows_in(span.offset, *step.target) >= 1,
        and_(realistic(span, step), mask.rows_in(span.offset, *step.drafter) >= 1),
    )


if __name__ == "__main__":
    main_of_group(GROUP.name, GROUP.obligations)
