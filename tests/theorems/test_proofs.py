"""The prover itself: every verdict can come out, and every obligation can fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

import spec.rules
from proofs.smt.obligation import Ablation, Formula, Obligation, Result, evaluate, negated, prove
from proofs.smt.solvers import CVC5, SOLVERS, Z3, SolverAnswer, build_formula
from proofs.smt.vocabulary import NotAMaskError, Value, Values, Vocabulary, mask_with_counts
from proofs.theorems.answers import QUESTIONS
from proofs.theorems.groups import GROUPS, all_obligations
from spec import algebra
from spec.algebra import and_, eq, or_
from spec.claims.assumptions import ASSUMPTIONS
from spec.claims.texts import ALL_TEXTS
from spec.rules.geometry import count_rows_before
from spec.verdict import Verdict
from tests.support.nightly import sampled

ALL = all_obligations()
BY_NAME = {obligation.name: obligation for obligation in ALL}
ON_THE_RELATION = ("slots", "residency", "references", "items")
"""Groups whose premises are states of a run, which random integers never hit: tests of the relation
evaluate them on states that runs come to."""
ALONE = [name for name in BY_NAME if BY_NAME[name].group not in ON_THE_RELATION]


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    return {obligation.name: prove(obligation) for obligation in ALL}


def _is_positive(v: Vocabulary) -> Formula:
    x = v.integer("x")
    return Formula({"x-at-least-2": x >= 2}, x > 0)


def _is_positive_unless_forbidden(v: Vocabulary) -> Formula:
    x = v.integer("x")
    return Formula({}, x > 0)


SOUND = Obligation(
    claim="no-error",
    group="test",
    short_name="positive",
    sentence="two or more is positive",
    build=_is_positive,
    witness={"x": 3},
    ablations=(Ablation("anything", drops=("x-at-least-2",)),),
)


# Every obligation


def test_all_are_proved(results: dict[str, Result]) -> None:
    """A rule that does not mean what its sentence says must not pass."""
    assert {name: r.detail for name, r in results.items() if r.verdict is not Verdict.PROVED} == {}
    assert len(results) >= 20
    for result in results.values():
        assert result.answers == {"z3": "unsat", "cvc5": "unsat"}


def test_names_and_ids_exist() -> None:
    """A proof for a claim or assumption that is not in the list would be counted for nothing."""
    assert len(BY_NAME) == len(ALL)
    for group, obligations in GROUPS.items():
        for obligation in obligations:
            assert obligation.group == group
            assert obligation.claim in ALL_TEXTS
            assert set(obligation.assumptions) <= set(ASSUMPTIONS)
            assert len({a.name for a in obligation.ablations}) == len(obligation.ablations) >= 1


def test_each_broken_assumption_is_refuted(results: dict[str, Result]) -> None:
    """An assumption that no proof needs is not an assumption."""
    named = [
        (assumption.id, reference)
        for assumption in ASSUMPTIONS.values()
        for reference in assumption.broken_by
    ]
    assert named
    for assumption_id, reference in named:
        obligation, _, ablation_name = reference.partition("/")
        result = results[obligation]
        assert assumption_id in result.obligation.assumptions
        (ablation,) = (a for a in result.ablations if a.name == ablation_name)
        assert ablation.verdict is Verdict.REFUTED
        (declared,) = (a for a in result.obligation.ablations if a.name == ablation_name)
        assert assumption_id in declared.drops


def test_theorems_named_in_spec_exist() -> None:
    """A docstring of spec/ that names a theorem which does not exist promises a proof."""
    for path in Path(spec.rules.__path__[0]).glob("*.py"):
        text = path.read_text(encoding="utf-8")
        for group in GROUPS:
            for part in text.split(f"``{group}.")[1:]:
                assert f"{group}.{part.partition('``')[0]}" in BY_NAME, path


def test_questions_name_existing_theorems() -> None:
    """An answer to a review question must be carried by theorems."""
    for question in QUESTIONS:
        for statement in question.statements:
            assert statement.theorems
            assert set(statement.theorems) <= set(BY_NAME)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_premise_is_needed(name: str) -> None:
    """A premise that the proof does not need makes the theorem look weaker than it is."""
    build = BY_NAME[name].build
    for premise in build_formula(build, Z3().vocabulary()).premises:
        assert Z3().check(negated(build, (premise,))).answer == "sat", premise


@pytest.mark.parametrize("name", BY_NAME)
def test_every_assumption_has_an_ablation(name: str) -> None:
    """Without it nobody sees what breaks when the assumption does not hold."""
    obligation = BY_NAME[name]
    dropped = {premise for ablation in obligation.ablations for premise in ablation.drops}
    assert set(obligation.assumptions) <= dropped


@pytest.mark.parametrize("name", BY_NAME)
def test_witness_names_exactly_the_variables(name: str) -> None:
    """Data for a variable that the formula lacks would suggest that it matters."""
    values = Values(BY_NAME[name].witness)
    BY_NAME[name].build(values)
    assert values.used == set(BY_NAME[name].witness)


def test_known_counterexamples(results: dict[str, Result]) -> None:
    """The smallest counterexamples are told in texts; they must stay what they are."""

    def model(reference: str) -> Any:
        obligation, _, name = reference.partition("/")
        return next(a.model for a in results[obligation].ablations if a.name == name)

    assert model("window.search-selects-overlapping/nested-features") == {
        "a_offset": 0,
        "a_length": 2,
        "b_offset": 0,
        "b_length": 1,
        "start": 1,
        "end": 2,
    }
    assert model("rows.starting-inside-is-targets/first-position-masked") == {
        "num_computed_tokens": 0,
        "num_scheduled_tokens": 1,
        "look_ahead": 1,
        "offset": 0,
        "length": 2,
        "is_embed": (False, True),
    }
    assert model("boundary.gather-passes-iff-invariant/no-tolerance") == {
        "num_computed_tokens": 0,
        "num_scheduled_tokens": 1,
        "look_ahead": 1,
        "offset": 1,
        "length": 1,
        "resident": False,
    }


def test_counterexamples_replay_on_integers(results: dict[str, Result]) -> None:
    """A counterexample that holds for a solver only is no counterexample."""
    for result in results.values():
        for ablation, outcome in zip(result.obligation.ablations, result.ablations, strict=True):
            build = ablation.build or result.obligation.build
            assert outcome.model is not None
            assert evaluate(build, outcome.model, ablation.drops) == (True, False)


# Every verdict


def test_proved() -> None:
    assert prove(SOUND).verdict is Verdict.PROVED


def test_refuted_with_the_smallest_model() -> None:
    """A wrong formula must be refuted, with data that a person can follow."""
    wrong = replace(SOUND, build=lambda v: Formula({"p": v.integer("x") >= -5}, v.integer("x") > 7))
    result = prove(wrong)
    assert result.verdict is Verdict.REFUTED
    assert result.model == {"x": 0}
    assert result.answers == {"z3": "sat", "cvc5": "sat"}


@pytest.mark.parametrize("name", ["clamping.differs-by-late-rows", "rows.steps-compose"])
def test_unknown_when_resources_run_out(name: str) -> None:
    """A solver that gave up has proved nothing."""
    result = prove(BY_NAME[name], resource_limit=20)
    assert result.verdict is Verdict.UNKNOWN
    assert "unknown" in result.answers.values()


class _Always:
    """A solver that answers the same to everything."""

    def __init__(self, name: str, answer: Any) -> None:
        self.name = name
        self._answer = answer

    def check(self, build: Any, resource_limit: int) -> SolverAnswer:
        return SolverAnswer(self._answer, 0)


@pytest.mark.parametrize("answer", ["sat", "unknown"])
def test_unknown_when_solvers_disagree(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    """One solver alone does not prove a claim."""
    monkeypatch.setattr("proofs.smt.obligation.SOLVERS", (Z3(), _Always("cvc5", answer)))
    assert prove(SOUND).verdict is Verdict.UNKNOWN


def test_vacuous_when_the_premise_fails_on_the_witness() -> None:
    """A theorem whose premise nobody has seen to hold says nothing."""
    assert prove(replace(SOUND, witness={"x": 1})).verdict is Verdict.VACUOUS


def test_vacuous_when_the_witness_is_not_realistic() -> None:
    """A witness that no engine could be in does not show that the premise happens."""
    build = lambda v: replace(_is_positive(v), realistic=v.integer("x") <= 10)  # noqa: E731
    assert prove(replace(SOUND, build=build, witness={"x": 11})).verdict is Verdict.VACUOUS


def test_vacuous_premise_of_a_contradiction() -> None:
    """From contradictory premises everything follows; no witness satisfies them."""

    def contradiction(v: Vocabulary) -> Formula:
        x = v.integer("x")
        return Formula({"x-at-least-2": x >= 2, "below": x < 2}, x > 5)

    assert prove(replace(SOUND, build=contradiction)).verdict is Verdict.VACUOUS


@pytest.mark.parametrize("witness", [{}, {"x": (True,)}])
def test_error_when_the_witness_does_not_fit(witness: Any) -> None:
    """A witness for other variables is no witness."""
    assert prove(replace(SOUND, witness=witness)).verdict is Verdict.ERROR


def test_error_when_a_model_does_not_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A counterexample that integers contradict shows a fault of the prover, not of the rule."""
    monkeypatch.setattr(Z3, "smallest_model", lambda *_: {"x": 3})
    result = prove(SOUND)
    assert result.ablations[0].verdict is Verdict.ERROR
    assert result.verdict is Verdict.ERROR
    wrong = replace(SOUND, build=_is_positive_unless_forbidden)
    assert prove(wrong).verdict is Verdict.ERROR


def test_error_without_an_ablation() -> None:
    """What cannot fail proves nothing."""
    assert prove(replace(SOUND, ablations=())).verdict is Verdict.ERROR


def test_error_when_an_ablation_is_proved() -> None:
    """An ablation that changes nothing shows that the obligation does not depend on it."""
    idle = Ablation("idle", build=_is_positive)
    result = prove(replace(SOUND, ablations=(idle,)))
    assert result.ablations[0].verdict is Verdict.PROVED
    assert result.verdict is Verdict.ERROR


def test_error_when_an_ablation_drops_nothing() -> None:
    """A misspelt premise would leave the formula as it is."""
    result = prove(replace(SOUND, ablations=(Ablation("misspelt", drops=("x-at-leest-2",)),)))
    assert result.verdict is Verdict.ERROR


# Determinism


def test_counts_and_models_repeat(results: dict[str, Result]) -> None:
    """Limits in resource units are of use only if the same question costs the same each time."""
    again_in = sampled("proofs made again", BY_NAME, lambda name: BY_NAME[name].group)
    for name in again_in:
        first, again = results[name], prove(BY_NAME[name])
        assert again.resources == first.resources
        assert [(a.name, a.model) for a in again.ablations] == [
            (a.name, a.model) for a in first.ablations
        ]


# Integers


@pytest.mark.parametrize("name", ALONE)
def test_theorems_hold_on_integers(name: str) -> None:
    """A theorem about terms that fails on numbers would be about something else."""
    obligation, random = BY_NAME[name], Random(name)
    # Drawn plainly: to have Hypothesis draw them takes far longer than to evaluate them. It aims
    # better, so that these are more.
    for _ in range(4 * settings.default.max_examples):
        drawn = _drawn(obligation.witness, random)
        premises, conclusion = evaluate(obligation.build, drawn, realistic=False)
        assert conclusion or not premises, drawn


def _drawn(witness: Mapping[str, Value], random: Random) -> dict[str, Value]:
    """Small integers, Booleans and masks for the variables of a witness."""

    def is_true() -> bool:
        return random.random() < 0.5

    drawn: dict[str, Value] = {
        variable: is_true() if isinstance(value, bool) else random.randint(-2, 6)
        for variable, value in witness.items()
        if not isinstance(value, tuple)
    }
    for variable, value in witness.items():
        if isinstance(value, tuple):
            length = max(int(str(drawn["length"])), 0)
            drawn["length"] = length
            drawn[variable] = tuple(is_true() for _ in range(length))
    return drawn


# Masks


@given(mask=st.lists(st.booleans(), max_size=6), positions=st.lists(st.integers(-2, 8)))
def test_every_mask_obeys_the_laws(mask: list[bool], positions: list[int]) -> None:
    """A law that some mask breaks would leave that mask out of every theorem."""
    counted = Values({"mask": tuple(mask)}).mask("mask", len(mask))
    for position in positions:
        counted(position)
    assert counted.laws() is True


@pytest.mark.parametrize("mask", ["", "T", "F", "TFTT", "FFTT", "FTTF"])
def test_mask_from_its_own_counts(mask: str) -> None:
    """A mask rebuilt from all of its prefix counts is the same mask."""
    bits = tuple(letter == "T" for letter in mask)
    counts = [(i, count_rows_before(bits, i)) for i in range(len(bits) + 1)]
    assert mask_with_counts(len(bits), counts) == bits


@pytest.mark.parametrize(
    "counts", [[(0, 1)], [(0, 0), (2, 3)], [(0, 0), (1, 1), (2, 0)], [(0, 0), (1, 1)]]
)
def test_counts_of_no_mask_are_refused(counts: list[tuple[int, int]]) -> None:
    """A counterexample with such counts would be about no feature."""
    with pytest.raises(NotAMaskError):
        mask_with_counts(2, counts)


def test_solvers_and_algebra_are_registered() -> None:
    """Both term languages must be known to the algebra, or proofs would not be of the rules."""
    for solver in SOLVERS:
        assert isinstance(solver, (Z3, CVC5))
    assert algebra.backend_of(z3.Int("x")) is not None
    assert str(and_(z3.Bool("p"), or_(eq(z3.Int("x"), 1), False)))
