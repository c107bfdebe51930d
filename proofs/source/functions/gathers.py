"""The two gathers of a release: claims on every path, and the exact set of tolerated misses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import z3

from impl.target import Runner
from proofs.source.ask.formulas import disjunction, simplest, written
from proofs.source.ask.piece import RULE, Piece, Question, settle, unmodelled
from proofs.source.ask.question import always, number_in
from proofs.source.code.release import ReleaseSource
from proofs.source.code.source_target import SourceTarget
from proofs.source.functions import gather_claims
from proofs.source.functions.gather_scenario import GatherScenario, Shape, hashes
from proofs.symbolic.integers import NotModelled, truth_term
from proofs.symbolic.tree import denote, leaves
from spec.algebra import BoolTerm, not_
from spec.claims.texts import function_claim
from spec.functions.cases import Case, EncoderOutput, GatherCase, GatherRequest
from spec.functions.findings import Finding
from spec.monitor.functions.observed import check_gather
from spec.rules.tolerance import miss_tolerated_v1, miss_tolerated_v2
from spec.verdict import Verdict


def gather_questions(runner: Runner, shape: Shape) -> list[Question]:
    """Every claim on one runner's gather, for one shape of features."""
    return [
        Question(claim_id, runner, shape.describe(), function_claim(claim_id).assumptions)
        for claim_id in gather_claims.CLAIMS
    ]


def gather_pieces(release: ReleaseSource, name: str, runner: Runner, shape: Shape) -> list[Piece]:
    """What :func:`gather_questions` asks, on every path."""
    questions = gather_questions(runner, shape)
    try:
        scenario = GatherScenario(release, runner, shape)
    except NotModelled as reason:
        return [unmodelled(question, reason) for question in questions]
    target = SourceTarget(release, name)

    def replay(model: z3.ModelRef, claim_id: str) -> tuple[Case, Sequence[Finding]]:
        case = _case(scenario, model)
        alone = replace(case, requests=case.requests[1:])
        found = judge_case(alone)
        if any(finding.claim == claim_id for finding in found):
            return alone, found
        return case, judge_case(case)

    def judge_case(case: GatherCase) -> Sequence[Finding]:
        return check_gather(case, target.gather(case, runner), f"{name} {runner}")

    return settle(
        [
            (question, partial(gather_claims.holds, question.claim, scenario))
            for question in questions
        ],
        scenario.exploration,
        scenario.tree,
        sizes=_sizes(scenario),
        replay=replay,
    )


def tolerance_questions(runner: Runner) -> list[Question]:
    """The rule by which one runner skips a missing feature."""
    rule = "miss_tolerated_v1" if runner == "V1" else "miss_tolerated_v2"
    return [Question(f"{RULE}{rule}", runner, "1 feature: dense, missing")]


def tolerance_piece(release: ReleaseSource, name: str, runner: Runner) -> Piece:
    """The exact condition under which a missing feature is skipped, and whether it is the rule's.

    For one dense feature with a row in the window, whose output is missing.
    """
    (question,) = tolerance_questions(runner)
    try:
        scenario = GatherScenario(release, runner, Shape((True,), hashes("A"), decode_beside=False))
    except NotModelled as reason:
        return unmodelled(question, reason)
    context = scenario.exploration.context
    premises = [
        *scenario.premises,
        *(truth_term(c, context) for c in (scenario.is_read(0), not_(scenario.is_resident(0)))),
    ]
    tolerated = denote(
        scenario.tree, lambda o: gather_claims.tolerates(scenario, o), context, pruned=False
    )
    paths = [
        conditions
        for conditions, outcome in leaves(scenario.tree)
        if gather_claims.tolerates(scenario, outcome)
    ]
    readable = simplest(premises, paths, context)
    same = always(premises, disjunction(readable, context) == tolerated)
    equal = always(premises, tolerated == truth_term(_rule(scenario, runner), context))
    covered = always(premises, denote(scenario.tree, lambda _: True, context))
    unfinished = scenario.exploration.counts.unfinished
    settled = same.verdict is covered.verdict is Verdict.PROVED and not unfinished
    verdict = equal.verdict if settled else Verdict.UNKNOWN
    return Piece(
        question.claim,
        question.part,
        question.shape,
        verdict,
        equal.z3,
        equal.cvc5,
        equal.resources,
        equal.milliseconds + same.milliseconds,
        counts=scenario.exploration.counts,
        detail=written(readable),
    )


def _rule(scenario: GatherScenario, runner: Runner) -> BoolTerm:
    offset = scenario.features.offsets[0]
    if runner == "V1":
        return miss_tolerated_v1(offset, scenario.computed, scenario.scheduled)
    _, end = scenario.window()
    return miss_tolerated_v2(offset, scenario.look_ahead, end)


def _sizes(scenario: GatherScenario) -> list[z3.ArithRef]:
    return [
        scenario.scheduled.term,
        scenario.computed.term,
        scenario.look_ahead.term,
        *scenario.features.sizes,
        scenario.prefill.term,
        scenario.before.term,
    ]


def _case(scenario: GatherScenario, model: z3.ModelRef) -> GatherCase:
    number = partial(number_in, model)
    features = scenario.features.in_model(model)
    rows = {feature.identifier: feature.num_rows for feature in features}
    resident = tuple(
        EncoderOutput(identifier, rows[identifier])
        for identifier, flag in scenario.resident.items()
        if z3.is_true(model.eval(flag.term, model_completion=True))
    )
    look_ahead = number(scenario.look_ahead.term)
    other_computed, other_prefill = 0, look_ahead + 1
    if scenario.shape.decode_beside:
        integer = scenario.exploration.integer
        other_computed = number(integer("other_computed").term)
        other_prefill = number(integer("other_prefill").term)
    first = GatherRequest(other_computed, number(scenario.before.term), other_prefill, ())
    request = GatherRequest(
        number(scenario.computed.term),
        number(scenario.scheduled.term),
        number(scenario.prefill.term),
        features,
    )
    return GatherCase((first, request), resident, look_ahead)
