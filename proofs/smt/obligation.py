"""An obligation: a formula that must be valid, with data that show it is about something.

Every obligation carries a *witness*, concrete data on which its premise holds, and *ablations*,
variants with a guard or an assumption dropped that must be refuted. What cannot fail proves
nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from proofs.smt.solvers import (
    RESOURCE_LIMIT,
    SOLVERS,
    Z3,
    Answer,
    Build,
    SolverAnswer,
    SolverVocabulary,
    build_formula,
)
from proofs.smt.vocabulary import Assignment, NotAMaskError, Values, Vocabulary
from spec.algebra import BoolTerm, and_, not_
from spec.claims.assumptions import ASSUMPTIONS
from spec.errors import message_of
from spec.verdict import Verdict


@dataclass(frozen=True)
class Formula:
    """Named premises and the conclusion that must follow from them.

    Attributes:
        premises: what the proof uses, and all of it is needed (a test drops each). A premise that
            is an assumption about the engine bears its id of
            :mod:`spec.claims.assumptions`.
        realistic: what holds of every engine besides; the proof does without. The witness and the
            counterexamples of ablations obey it, so that they are data that a person recognises.
    """

    premises: dict[str, BoolTerm]
    conclusion: BoolTerm
    realistic: BoolTerm = True


BuildFormula: TypeAlias = Callable[[Vocabulary], Formula]


@dataclass(frozen=True)
class Ablation:
    """A variant of an obligation that must be refuted.

    Attributes:
        drops: premises left out.
        build: the formula with a guard changed; ``None`` for the obligation's own.
    """

    name: str
    drops: tuple[str, ...] = ()
    build: BuildFormula | None = None


@dataclass(frozen=True)
class Obligation:
    """A formula that must hold for all integers.

    Attributes:
        claim: id of :mod:`spec.claims.texts` that it supports.
        group: the group's name; the module :mod:`proofs` has of that name.
        short_name: name within the group.
        sentence: what is shown, for a person.
        build: the formula, over any vocabulary.
        witness: concrete data on which the premise holds.
        ablations: variants that must be refuted, at least one.
    """

    claim: str
    group: str
    short_name: str
    sentence: str
    build: BuildFormula
    witness: Assignment
    ablations: tuple[Ablation, ...]

    @property
    def name(self) -> str:
        """The theorem's id, ``group.name``."""
        return f"{self.group}.{self.short_name}"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Ids of the assumptions among the premises."""
        premises = build_formula(self.build, Z3().vocabulary()).premises
        return tuple(name for name in premises if name in ASSUMPTIONS)


@dataclass(frozen=True)
class AblationResult:
    """What became of an ablation; REFUTED, with its smallest counterexample, is as it should be."""

    name: str
    verdict: Verdict
    model: Assignment | None
    detail: str = ""


@dataclass(frozen=True)
class Result:
    """What became of an obligation.

    Attributes:
        obligation: what was to be shown.
        verdict: what became of it, its witness and its ablations taken together.
        answers: each solver's answer to the negated formula.
        resources: resource units of each solver for the formula itself.
        milliseconds: time for everything, ablations included.
        ablations: what became of each ablation.
        detail: why it is not proved.
        model: the counterexample, if there is one.
    """

    obligation: Obligation
    verdict: Verdict
    answers: dict[str, Answer]
    resources: dict[str, int]
    milliseconds: float
    ablations: tuple[AblationResult, ...]
    detail: str = ""
    model: Assignment | None = None


@dataclass(frozen=True)
class _Judgement:
    verdict: Verdict
    detail: str = ""
    model: Assignment | None = None


def negated(build: BuildFormula, drops: tuple[str, ...] = (), realistic: bool = False) -> Build:
    """The question for a solver: can the premises hold and the conclusion fail?

    With ``realistic`` only among realistic data. The question raises ``KeyError`` for a premise to
    drop that there is none of.
    """

    def question(vocabulary: SolverVocabulary) -> BoolTerm:
        formula = build(vocabulary)
        for name in drops:
            formula.premises[name]
        kept = [premise for name, premise in formula.premises.items() if name not in drops]
        laws = [mask.laws() for mask in vocabulary.masks.values()]
        if realistic:
            kept.append(formula.realistic)
        return and_(vocabulary.truth(True), *kept, *laws, not_(formula.conclusion))

    return question


def evaluate(
    build: BuildFormula, data: Assignment, drops: tuple[str, ...] = (), realistic: bool = True
) -> tuple[bool, bool]:
    """Whether the premises (and what is realistic) and the conclusion hold on concrete data.

    Raises:
        KeyError: the data lack a variable of the formula.
        TypeError: a variable has data of another kind.
        NotAMaskError: a mask has another length than the formula says.
    """
    formula = build(Values(data))
    premises = all(value for name, value in formula.premises.items() if name not in drops)
    return premises and (not realistic or bool(formula.realistic)), bool(formula.conclusion)


def prove(obligation: Obligation, resource_limit: int = RESOURCE_LIMIT) -> Result:
    """Ask both solvers, replay the witness, and refute every ablation.

    The verdict is PROVED only if both solvers answer ``unsat``, the witness holds and every
    ablation is REFUTED. An ablation that is not REFUTED makes it ERROR, for the check then cannot
    tell the obligation from its broken variant; UNKNOWN where a solver gave up on the ablation.
    """
    begin = time.perf_counter()
    found = {s.name: s.check(negated(obligation.build), resource_limit) for s in SOLVERS}
    judgement = _judge(found, obligation.build, (), False)
    ablations = tuple(_refute(obligation, a, resource_limit) for a in obligation.ablations)
    if judgement.verdict is Verdict.PROVED:
        judgement = _judge_evidence(obligation, ablations)
    return Result(
        obligation=obligation,
        verdict=judgement.verdict,
        answers={name: answer.answer for name, answer in found.items()},
        resources={name: answer.resources for name, answer in found.items()},
        milliseconds=(time.perf_counter() - begin) * 1000,
        ablations=ablations,
        detail=judgement.detail,
        model=judgement.model,
    )


def _judge(
    found: dict[str, SolverAnswer],
    build: BuildFormula,
    drops: tuple[str, ...],
    realistic: bool,
) -> _Judgement:
    """The verdict on a formula from both solvers' answers and the replay of the smallest model."""
    given = {answer.answer for answer in found.values()}
    text = ", ".join(f"{name}: {answer.answer}" for name, answer in found.items())
    if given == {"unsat"}:
        return _Judgement(Verdict.PROVED)
    if given != {"sat"}:
        why = "a solver gave up" if "unknown" in given else "the solvers disagree"
        return _Judgement(Verdict.UNKNOWN, f"{why} ({text})")
    try:
        model = Z3().smallest_model(found[Z3.name])
        premises, conclusion = evaluate(build, model, drops, realistic)
    except ArithmeticError as error:
        return _Judgement(Verdict.UNKNOWN, message_of(error))
    except NotAMaskError as error:
        return _Judgement(Verdict.ERROR, f"the model is not concrete data: {error}")
    if not premises or conclusion:
        return _Judgement(
            Verdict.ERROR, "the solvers' counterexample does not replay on integers", model
        )
    return _Judgement(Verdict.REFUTED, "counterexample, replayed on integers", model)


def _refute(obligation: Obligation, ablation: Ablation, resource_limit: int) -> AblationResult:
    build = ablation.build or obligation.build
    question = negated(build, ablation.drops, realistic=True)
    try:
        found = {s.name: s.check(question, resource_limit) for s in SOLVERS}
    except KeyError as error:
        detail = f"there is no premise {message_of(error)} to drop"
        return AblationResult(ablation.name, Verdict.ERROR, None, detail)
    judgement = _judge(found, build, ablation.drops, True)
    return AblationResult(ablation.name, judgement.verdict, judgement.model, judgement.detail)


def _judge_evidence(obligation: Obligation, ablations: tuple[AblationResult, ...]) -> _Judgement:
    """The verdict on a valid formula from its witness and its ablations."""
    try:
        premises, conclusion = evaluate(obligation.build, obligation.witness)
    except (KeyError, TypeError, NotAMaskError) as error:
        why = f"the witness does not fit the formula: {message_of(error)}"
        return _Judgement(Verdict.ERROR, why)
    if not premises:
        return _Judgement(Verdict.VACUOUS, "the premise does not hold on the witness")
    if not conclusion:
        return _Judgement(Verdict.ERROR, "proved, but the conclusion fails on the witness")
    if not ablations:
        return _Judgement(Verdict.ERROR, "it has no ablation")
    for ablation in ablations:
        if ablation.verdict is Verdict.UNKNOWN:
            return _Judgement(Verdict.UNKNOWN, f"ablation {ablation.name}: {ablation.detail}")
        if ablation.verdict is not Verdict.REFUTED:
            return _Judgement(
                Verdict.ERROR,
                f"ablation {ablation.name} must be REFUTED but is {ablation.verdict.value}; the "
                "obligation does not depend on what it drops",
            )
    return _Judgement(Verdict.PROVED)
