"""The symbolic engine: every path is taken, and nothing unfinished or unmodelled passes."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import Any

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from proofs.source.ask.formulas import disjunction, simplest, written
from proofs.source.ask.masks import SymbolicCumulativeCounts, SymbolicMask
from proofs.source.ask.piece import Question, settle
from proofs.source.ask.question import always, smallest_counterexample
from proofs.symbolic.exploration import Exploration
from proofs.symbolic.integers import AnyInt, NotModelled, SymbolicInt
from proofs.symbolic.tree import Fork, Leaf, Pruned, Unfinished, denote, leaves
from spec.algebra import BoolTerm, and_, eq, implies, ite, not_, or_
from spec.verdict import Verdict


def _three() -> tuple[Exploration, list[SymbolicInt]]:
    exploration = Exploration()
    return exploration, [exploration.integer(name) for name in "abc"]


def test_every_path_of_a_sort_is_found() -> None:
    """A missed path would be an input that no claim was proved on."""
    exploration, values = _three()
    tree = exploration.explore(lambda: tuple(sorted(range(3), key=lambda i: values[i])))
    assert {outcome for _, outcome in leaves(tree)} == {
        (0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0),
    }  # fmt: skip


@pytest.mark.integers
@given(st.lists(st.integers(-5, 5), min_size=4, max_size=4))
def test_the_tree_denotes_what_the_function_returns(numbers: list[int]) -> None:
    """Proofs are about the tree; if it differed from the function they would be about nothing."""

    def function(a: Any, b: Any, c: Any, d: Any) -> int:
        where = bisect.bisect_left([a, b], c)
        return where + (2 if max(a, d) - 1 >= b and a != d else 0)

    exploration = Exploration()
    symbols = [exploration.integer(name) for name in "abcd"]
    tree = exploration.explore(lambda: function(*symbols))
    wanted = function(*numbers)
    is_wanted = denote(tree, lambda outcome: outcome == wanted, exploration.context)
    concrete = [
        (s.term, z3.IntVal(n, exploration.context)) for s, n in zip(symbols, numbers, strict=True)
    ]
    assert z3.is_true(z3.simplify(z3.substitute(is_wanted, concrete)))


def test_infeasible_branches_are_pruned_and_checked_again() -> None:
    """A wrongly pruned branch must fail the proof: pruned counts as violated."""
    exploration, (a, b, _) = _three()
    exploration.assume(a.term < b.term)
    tree = exploration.explore(lambda: "small" if a < b + 1 else "large")
    assert isinstance(tree, Fork)
    assert isinstance(tree.holds, Leaf)
    assert isinstance(tree.fails, Pruned)
    claim = denote(tree, lambda _: True, exploration.context)
    assert always(exploration.assumptions, claim).verdict is Verdict.PROVED
    assert always([], claim).verdict is Verdict.REFUTED


def _settled(exploration: Exploration, run: Callable[[], bool]) -> Verdict:
    tree = exploration.explore(run)
    pieces = settle(
        [(Question("claim", "part", "shape"), lambda outcome: outcome)],
        exploration,
        tree,
        sizes=[z3.IntVal(0, exploration.context)],
        replay=lambda _model, _claim: (None, ()),  # type: ignore[arg-type,return-value]
    )
    return pieces[0].verdict


def test_an_exhausted_path_budget_is_unknown() -> None:
    """An unfinished path never passes as proved."""
    exploration, values = _three()
    exploration.path_budget = 2
    assert _settled(exploration, lambda: bool(sorted(range(3), key=lambda i: values[i]))) is (
        Verdict.UNKNOWN
    )
    assert exploration.counts.unfinished > 0


def test_a_solver_that_gives_up_is_unknown() -> None:
    """Resources that run out are reported, not taken for infeasible."""
    exploration = Exploration(resource_limit=1)
    a, b = exploration.integer("a"), exploration.integer("b")
    exploration.assume(a.term * b.term * a.term > 7, a.term + b.term > 3, b.term < a.term)
    tree = exploration.explore(lambda: bool(a > b + 3) or bool(b > 17))
    assert isinstance(tree, Unfinished) or exploration.counts.unfinished > 0


def test_a_refutation_that_does_not_replay_is_an_error() -> None:
    """A counterexample that the real code does not show is our fault, not the code's."""
    exploration, (a, _, _) = _three()
    assert _settled(exploration, lambda: bool(a > 3)) is Verdict.ERROR


def test_unmodelled_code_stops_the_run() -> None:
    """Code that needs a concrete integer must not go on with a guess."""
    exploration, (a, _, _) = _three()
    with pytest.raises(NotModelled, match="concrete value"):
        exploration.explore(lambda: list(range(a)))  # type: ignore[arg-type]
    with pytest.raises(NotModelled, match="outside an exploration"):
        bool(a > 0)
    with pytest.raises(NotModelled, match="combined with str"):
        a + "1"


def test_what_is_made_once_is_what_would_be_made_again() -> None:
    """Wrong: two operations, or two operands, taken for each other, so that a path is lost."""
    exploration, (a, b, _) = _three()
    made = [f() for _ in range(2) for f in (
        lambda: a + b, lambda: a - b, lambda: b - a, lambda: a + 1, lambda: 1 - a, lambda: a - 1,
        lambda: a * 2, lambda: a < b, lambda: a <= b, lambda: b < a, lambda: a == b, lambda: a != b,
        lambda: a < 1, lambda: a > 1, lambda: and_(a < b, b < 1), lambda: or_(a < b, b < 1),
        lambda: not_(a < b), lambda: implies(a < b, b < 1), lambda: implies(b < 1, a < b),
        lambda: ite(a < b, a, 0), lambda: ite(a < b, 0, a), lambda: ite(a < b, b, a),
    )]  # fmt: skip
    half = len(made) // 2
    assert all(first is second for first, second in zip(made[:half], made[half:], strict=True))
    assert len({str(value.term) for value in made}) == half
    values = [(x.term, z3.IntVal(n, exploration.context)) for x, n in ((a, 3), (b, -2))]
    numbers = [str(z3.simplify(z3.substitute(value.term, values))) for value in made[:half]]
    assert numbers == [
        "1", "5", "-5", "4", "-2", "2", "6", "False", "False", "True", "False", "True", "False",
        "True", "False", "True", "True", "True", "False", "0", "3", "3",
    ]  # fmt: skip


def test_plain_truth_values_decide_what_they_can() -> None:
    """Wrong: a condition that is known without a solver is dropped, or decides the other way."""
    _, (a, b, _) = _three()
    less = a < b
    assert and_(less, True) is or_(less, False) is implies(True, less) is less
    assert and_(less, False) is False
    assert or_(less, True) is implies(False, less) is implies(less, True) is True
    assert not_(not_(less)) is less
    assert implies(less, False) is not_(less)


def test_smallest_counterexample_is_smallest() -> None:
    """Reviewers read the counterexample: it must not depend on the solver's luck."""
    context = z3.Context()
    a, b = z3.Ints("a b", context)
    model = smallest_counterexample([a >= 0, b >= 0], a + b < 5, [a, b])
    assert model is not None
    assert (model[a].as_long(), model[b].as_long()) == (0, 5)


@given(st.lists(st.booleans(), min_size=1, max_size=6), st.data())
def test_masks_obey_their_laws_and_only_those(mask: list[bool], data: st.DataObject) -> None:
    """A law that a real mask breaks would hide paths; prefix counts of any mask must be allowed."""
    exploration = Exploration()
    length = exploration.integer("length")
    symbolic = SymbolicMask(exploration, 0, length, dense=False)
    places = data.draw(st.lists(st.integers(0, len(mask)), max_size=4))
    premises = [length.term == len(mask)]
    for index, place in enumerate(places):
        position = exploration.integer(f"p{index}")
        count = symbolic.rows_before(position)
        premises += [position.term == place, (count == sum(mask[:place])).term]
    solver = z3.Solver(ctx=exploration.context)
    solver.add(*exploration.facts, *premises)
    assert solver.check() == z3.sat
    found = symbolic.in_model(solver.model())
    assert found is not None
    assert [sum(found[:place]) for place in places] == [sum(mask[:place]) for place in places]


def test_cumulative_counts_index_as_lists_do() -> None:
    """The fault of old releases was a list indexed from its end: both ends must be modelled."""
    exploration = Exploration()
    length, index = exploration.integer("length"), exploration.integer("index")
    exploration.assume(length.term >= 1)
    mask = SymbolicMask(exploration, 0, length, dense=False)
    counts = SymbolicCumulativeCounts(mask, length)

    def run() -> AnyInt | None:
        try:
            return counts[index]
        except IndexError:
            return None

    tree = exploration.explore(run)
    inside = and_(index >= 0, index < length)
    from_end = and_(index < 0, index >= -length)

    def right(outcome: AnyInt | None) -> BoolTerm:
        if outcome is None:
            return not_(or_(inside, from_end))
        place = ite(inside, index, length + index)
        return and_(or_(inside, from_end), eq(outcome, mask.rows_before(place + 1)))

    condition = denote(tree, right, exploration.context)
    premises = [*exploration.assumptions, *exploration.facts]
    assert always(premises, condition).verdict is Verdict.PROVED


def test_formulas_are_short_and_equal_to_the_paths() -> None:
    """The printed rule is what a reviewer reads; it must say exactly what the code does."""
    exploration, (a, b, c) = _three()

    def run() -> bool:
        if c > 0 and a > 5:
            return bool(a + 1 <= b)
        return bool(a < b)

    tree = exploration.explore(run)
    paths = [conditions for conditions, outcome in leaves(tree) if outcome]
    readable = simplest([], paths, exploration.context)
    assert written(readable) == "b >= a + 1"
    goes = denote(tree, lambda outcome: outcome, exploration.context)
    same = disjunction(readable, exploration.context) == goes
    assert always([], same).verdict is Verdict.PROVED
    assert written([]) == "never"
    assert written([[]]) == "always"


def test_truth_values_combine_without_forking() -> None:
    """Wrong: ``|=`` on a flag that raises, and is taken for an exception of the code's."""
    exploration = Exploration()
    x, y = exploration.integer("x"), exploration.integer("y")

    def run() -> tuple[Any, ...]:
        flag: Any = False
        flag |= x > 0
        return flag, True & (y > 0), (x > 0) & (y > 0)

    tree = exploration.explore(run)
    assert exploration.counts.paths == 1
    assert isinstance(tree, Leaf)
    first, second, both = tree.outcome
    meant = z3.And(
        first.term == (x.term > 0),
        second.term == (y.term > 0),
        both.term == z3.And(x.term > 0, y.term > 0),
    )
    assert always([], meant).verdict is Verdict.PROVED
    with pytest.raises(NotModelled, match="truth value was combined"):
        _ = (x > 0) | 1
