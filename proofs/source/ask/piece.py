"""The result of one question about one part of a release's source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import z3

from proofs.smt.solvers import Answer
from proofs.source.ask.question import (
    Reply,
    always,
    counterexample,
    number_in,
    smallest_counterexample,
)
from proofs.symbolic.exploration import Counts, Exploration
from proofs.symbolic.integers import Condition, NotModelled, SymbolicBool, truth_term
from proofs.symbolic.tree import Fork, Leaf, Tree, Value, denote
from spec.functions.cases import AnyCase
from spec.functions.findings import Finding
from spec.verdict import Verdict

RULE = "rule:"
"""Marks a question that compares code with a rule: a difference needs no violated claim."""


@dataclass(frozen=True)
class Piece:
    """One claim, or one rule, on one part, for one shape of input.

    Attributes:
        claim: id of a claim; or :data:`RULE` and the name of a rule of :mod:`spec.rules`.
        part: a part of :data:`impl.target.Part`.
        shape: what was enumerated, in words.
        verdict: PROVED, REFUTED with a finding, UNKNOWN for anything unfinished, or ERROR.
        assumptions: ids of the assumptions that the proof used.
        counts: paths, queries and unfinished paths behind it.
        detail: a formula, or why there is no proof.
        finding: a counterexample that was replayed on plain integers.
        size: order of counterexamples, smallest first.
    """

    claim: str
    part: str
    shape: str
    verdict: Verdict
    z3: Answer = "unknown"
    cvc5: Answer = "unknown"
    resources: int = 0
    milliseconds: float = 0.0
    assumptions: tuple[str, ...] = ()
    counts: Counts = field(default_factory=Counts)
    detail: str = ""
    finding: Finding | None = None
    size: tuple[int, ...] = ()


@dataclass(frozen=True)
class Question:
    """A claim on an explored function, and how to show that it fails."""

    claim: str
    part: str
    shape: str
    assumptions: tuple[str, ...] = ()


Replay = Callable[[z3.ModelRef, str], tuple[AnyCase, Sequence[Finding]]]
"""Builds a concrete case of a model, judges the real function on it with the monitor, and drops
from the case what the named claim's violation does not need."""


Asked: TypeAlias = tuple[Question, Callable[[Value], Condition]]
"""A claim, with the condition under which one path's outcome satisfies it."""


def settle(
    asked: Sequence[Asked[Value]],
    exploration: Exploration,
    tree: Tree[Value],
    *,
    sizes: Sequence[z3.ArithRef],
    replay: Replay,
    also: Sequence[z3.BoolRef] = (),
) -> list[Piece]:
    """Prove each claim on every path, or refute it with a replayed counterexample.

    Args:
        asked: the claims, each once.
        sizes: the integers of a counterexample, to be made small.
        replay: judges a counterexample on plain integers.
        also: further premises.

    An unfinished path, a solver that gives up and a disagreement are UNKNOWN; a counterexample that
    the monitor does not confirm is an ERROR of ours.
    """
    if exploration.counts.unfinished:
        reason = "paths are unfinished"
        return [_piece(q, Verdict.UNKNOWN, None, exploration, reason) for q, _ in asked]
    settled: dict[str, Piece] = {}
    rest = [(question, _built_once(holds)) for question, holds in asked]
    while rest:
        # All claims at once: where they hold, that one question settles each of them.
        condition = _denoted(rest, exploration, tree)
        # Building a condition may have named new positions of masks, hence new facts.
        premises = [*exploration.assumptions, *exploration.facts, *also]
        joint = always(premises, condition)
        if joint.verdict is Verdict.PROVED:
            share = replace(joint, milliseconds=joint.milliseconds / len(rest))
            settled |= {q.claim: _piece(q, Verdict.PROVED, share, exploration, "") for q, _ in rest}
            break
        alone = rest
        if joint.verdict is Verdict.REFUTED:
            alone = _broken(rest, tree, premises, condition) or rest
        for question, holds in alone:
            condition = _denoted([(question, holds)], exploration, tree)
            premises = [*exploration.assumptions, *exploration.facts, *also]
            settled[question.claim] = _judge(
                question, exploration, premises, condition, sizes, replay
            )
        rest = [waiting for waiting in rest if waiting not in alone]
    return [settled[question.claim] for question, _ in asked]


def _built_once(
    holds: Callable[[Value], Condition],
) -> Callable[[Value], Condition]:
    """The same condition, built once for each path: the tree keeps what paths returned."""
    built: dict[int, Condition] = {}

    def of_path(outcome: Value) -> Condition:
        if id(outcome) not in built:
            built[id(outcome)] = holds(outcome)
        return built[id(outcome)]

    return of_path


def _denoted(asked: Sequence[Asked[Value]], exploration: Exploration, tree: Tree[Value]) -> Any:
    """The condition under which a run satisfies all that is asked."""
    context = exploration.context
    if len(asked) == 1:
        ((_, only),) = asked
        return denote(tree, only, context)

    def all_hold(outcome: Value) -> Condition:
        conditions = [c for c in (holds(outcome) for _, holds in asked) if c is not True]
        return z3.And(*(truth_term(c, context) for c in conditions)) if conditions else True

    return denote(tree, all_hold, context)


def _broken(
    asked: Sequence[Asked[Value]],
    tree: Tree[Value],
    premises: Sequence[z3.BoolRef],
    condition: z3.BoolRef,
) -> list[Asked[Value]]:
    """Those that one counterexample to all of them breaks; the others may hold together."""
    model = counterexample(premises, condition)
    while model is not None and isinstance(tree, Fork):
        taken = z3.is_true(model.eval(tree.condition, model_completion=True))
        tree = tree.holds if taken else tree.fails
    if model is None or not isinstance(tree, Leaf):
        return []

    def breaks(value: Condition) -> bool:
        if isinstance(value, bool):
            return not value
        term = value.term if isinstance(value, SymbolicBool) else value
        return not z3.is_true(model.eval(term, model_completion=True))

    return [(question, holds) for question, holds in asked if breaks(holds(tree.outcome))]


def _judge(
    question: Question,
    exploration: Exploration,
    premises: Sequence[z3.BoolRef],
    condition: z3.BoolRef,
    sizes: Sequence[z3.ArithRef],
    replay: Replay,
) -> Piece:
    reply = always(premises, condition)
    if reply.verdict is not Verdict.REFUTED:
        detail = "" if reply.verdict is Verdict.PROVED else "the solvers gave up or disagree"
        return _piece(question, reply.verdict, reply, exploration, detail)
    model = smallest_counterexample(premises, condition, sizes)
    if model is None:
        return _piece(question, Verdict.ERROR, reply, exploration, "no model of the refutation")
    case, findings = replay(model, question.claim)
    confirmed = next((f for f in findings if f.claim == question.claim), None)
    size = tuple(number_in(model, value) for value in sizes)
    if confirmed is None and question.claim.startswith(RULE):
        return _piece(question, Verdict.REFUTED, reply, exploration, f"differs at {case}")
    if confirmed is None:
        return _piece(
            question, Verdict.ERROR, reply, exploration, f"{case} does not replay as a violation"
        )
    return _piece(question, Verdict.REFUTED, reply, exploration, "", confirmed, (sum(size), *size))


def unmodelled(question: Question, reason: NotModelled) -> Piece:
    """The code did something that the symbolic run does not model: nothing is known."""
    return Piece(
        question.claim,
        question.part,
        question.shape,
        Verdict.UNKNOWN,
        assumptions=question.assumptions,
        detail=f"not modelled: {reason}",
    )


def _piece(
    question: Question,
    verdict: Verdict,
    reply: Reply | None,
    exploration: Exploration,
    detail: str,
    finding: Finding | None = None,
    size: tuple[int, ...] = (),
) -> Piece:
    return Piece(
        question.claim,
        question.part,
        question.shape,
        verdict,
        reply.z3 if reply else "unknown",
        reply.cvc5 if reply else "unknown",
        reply.resources if reply else 0,
        reply.milliseconds if reply else 0.0,
        question.assumptions,
        exploration.counts,
        detail,
        finding,
        size,
    )
