"""The window search and the row count of a release, on symbolic integers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import z3

import proofs.smt.solvers  # noqa: F401 - registers z3's terms with the algebra
from proofs.source.ask.masks import SymbolicCumulativeCounts, SymbolicMask
from proofs.source.ask.piece import RULE, Piece, Question, settle, unmodelled
from proofs.source.ask.question import number_in
from proofs.source.code.gather import FeatureInput, feature_specs, position_of
from proofs.source.code.recorders import FeatureMask
from proofs.source.code.release import ReleaseSource
from proofs.source.code.source_target import UTILS_MODULE, WINDOW_FUNCTION, SourceTarget
from proofs.symbolic.exploration import BudgetExhausted, Exploration
from proofs.symbolic.integers import AnyInt, NotModelled
from proofs.symbolic.tree import Tree
from spec.algebra import BoolTerm, and_, eq
from spec.claims.texts import function_claim
from spec.errors import described
from spec.functions.cases import Case, RowRangeCase, WindowCase
from spec.functions.findings import Finding
from spec.monitor.functions.observed import check_row_range, check_window
from spec.record.feature import Feature
from spec.rules.geometry import meets, selected_by_window_search


def window_questions(count: int) -> list[Question]:
    """``window-exact``, and equality with the rule of the two bisections."""
    exact = function_claim("window-exact")
    names = (exact.id, f"{RULE}selected_by_window_search")
    return [Question(name, "window", f"{count} feature(s)", exact.assumptions) for name in names]


def window_pieces(release: ReleaseSource, name: str, count: int) -> list[Piece]:
    """What :func:`window_questions` asks, on every path."""
    question, rule = window_questions(count)
    exploration = Exploration()
    integer = exploration.integer
    start, end = integer("start"), integer("end")
    offsets = [integer(f"offset_{i}") for i in range(count)]
    lengths = [integer(f"length_{i}") for i in range(count)]
    exploration.assume(start.term >= 0, start.term < end.term, offsets[0].term >= 0)
    exploration.assume(*(length.term >= 1 for length in lengths))
    exploration.assume(
        *(offsets[i + 1].term >= offsets[i].term + lengths[i].term for i in range(count - 1))
    )
    features = [
        FeatureInput(offset, length, "ABC"[i], None, None)
        for i, (offset, length) in enumerate(zip(offsets, lengths, strict=True))
    ]

    def run() -> tuple[int, int]:
        search = getattr(release.module(UTILS_MODULE), WINDOW_FUNCTION)
        try:
            low, high = search(feature_specs(release, features), start=start, end=end)
        except (NotModelled, BudgetExhausted, MemoryError):
            raise
        except Exception as error:
            raise NotModelled(f"the search raises {described(error)}") from error
        return low, high

    try:
        tree: Tree[tuple[int, int]] = exploration.explore(run)
    except NotModelled as reason:
        return [unmodelled(question, reason), unmodelled(rule, reason)]
    target = SourceTarget(release, name)

    def replay(model: z3.ModelRef, _claim: str) -> tuple[Case, Sequence[Finding]]:
        number = partial(number_in, model)
        case = WindowCase(
            tuple(
                Feature(number(o.term), number(x.term), "ABC"[i])
                for i, (o, x) in enumerate(zip(offsets, lengths, strict=True))
            ),
            number(start.term),
            number(end.term),
        )
        return case, check_window(case, target.window(case), f"{name} window")

    sizes = [end.term, start.term, *(v.term for v in (*lengths, *offsets))]
    placed = list(zip(offsets, lengths, strict=True))
    overlap = [meets(o.term, x.term, start.term, end.term) for o, x in placed]
    bisected = [selected_by_window_search(o.term, x.term, start.term, end.term) for o, x in placed]
    return settle(
        [(question, partial(_selects, overlap)), (rule, partial(_selects, bisected))],
        exploration,
        tree,
        sizes=sizes,
        replay=replay,
    )


def _selects(wanted: Sequence[z3.BoolRef], found: tuple[int, int]) -> z3.BoolRef:
    """Whether the range of indices found holds exactly the wanted features."""
    low, high = found
    return z3.And([w if low <= i < high else z3.Not(w) for i, w in enumerate(wanted)])


def row_range_questions() -> list[Question]:
    """``row-range-exact`` for a mask of any length, empty ranges included."""
    return [Question("row-range-exact", "row_range", "any mask")]


def row_range_piece(release: ReleaseSource, name: str) -> Piece:
    """What :func:`row_range_questions` asks, on every path."""
    (question,) = row_range_questions()
    exploration = Exploration()
    length = exploration.integer("length")
    start, end = exploration.integer("start"), exploration.integer("end")
    exploration.assume(length.term >= 1, start.term >= 0, end.term <= length.term)
    exploration.assume(start.term <= end.term)
    mask = SymbolicMask(exploration, 0, length, dense=False)
    counts = SymbolicCumulativeCounts(mask, length)
    feature = FeatureInput(0, length, "A", FeatureMask(0), counts)

    def run() -> tuple[AnyInt, AnyInt] | None:
        try:
            low, high = position_of(release, feature).get_embeds_indices_in_range(start, end)
        except (NotModelled, BudgetExhausted, MemoryError):
            raise
        except Exception:
            return None
        return low, high

    try:
        tree: Tree[tuple[AnyInt, AnyInt] | None] = exploration.explore(run)
    except NotModelled as reason:
        return unmodelled(question, reason)
    target = SourceTarget(release, name)
    wanted = mask.rows_before(start), mask.rows_before(end)

    def holds(outcome: tuple[AnyInt, AnyInt] | None) -> BoolTerm:
        if outcome is None:
            return False
        condition: BoolTerm = and_(eq(outcome[0], wanted[0]), eq(outcome[1], wanted[1]))
        return condition

    def replay(model: z3.ModelRef, _claim: str) -> tuple[Case, Sequence[Finding]]:
        number = partial(number_in, model)
        is_embed = mask.in_model(model)
        assert is_embed is not None
        case = RowRangeCase(is_embed, number(start.term), number(end.term))
        return case, check_row_range(case, target.row_range(case), f"{name} row_range")

    sizes = [length.term, start.term, end.term]
    return settle([(question, holds)], exploration, tree, sizes=sizes, replay=replay)[0]
