"""Which rule a release schedules encoder inputs by: one call, settled from end to end.

Which features are referenced, encoded, loaded or duplicates, how many tokens run and how much
encoder budget is left is compared with the rule. Whatever a call does otherwise, harmless or not,
is a difference.

All numbers are unbounded, within the shapes of :data:`proofs.source.passes.call_scenario.SHAPES`:
text alone; one feature that is dense, masked, with a store of encoder outputs, or of an
encoder-decoder model; two dense ones of one hash or of two. Not looked at: two with masks or with a
store, three and more, features without a row, encoder-decoder items that start past 0, and a shift
above 1 in releases without a reservation, which have no drafter that needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import z3

from proofs.source.ask.piece import RULE, Piece, Question, unmodelled
from proofs.source.ask.question import Reply, always, smallest_counterexample
from proofs.source.code.call import CallInput, CallSeen, call_scheduling
from proofs.source.code.encoder_passes import require_known_calls
from proofs.source.code.release import ReleaseSource
from proofs.source.passes.call_rule import KNOWN_RULES, Expected, KnownRules, expected
from proofs.source.passes.call_scenario import SHAPES, CallScenario
from proofs.symbolic.exploration import Counts
from proofs.symbolic.integers import NotModelled, truth_term
from proofs.symbolic.tree import denote
from spec.algebra import BoolTerm, and_, eq, not_
from spec.rules.releases import ReleaseRules
from spec.verdict import Verdict

NAME = f"{RULE}scheduled_inputs"


_ASSUMPTIONS = ("features-sorted-disjoint", "features-not-empty", "hash-is-content")


def scheduled_inputs_questions() -> list[Question]:
    """Which known rules a release's calls equal."""
    shape = "one call: text, one feature, two dense ones"
    return [Question(NAME, "scheduling call", shape, _ASSUMPTIONS)]


def scheduled_inputs_piece(
    release: ReleaseSource, candidates: Sequence[KnownRules] = KNOWN_RULES
) -> Piece:
    """Which known rules a release's calls equal, on every shape.

    Args:
        release: the source.
        candidates: those to compare with, in this order, up to the first that it equals.
    """
    (question,) = scheduled_inputs_questions()
    try:
        require_known_calls(release)
        replies, equal = _compare(release, candidates)
    except NotModelled as reason:
        return unmodelled(question, reason)
    explored = {id(scenario): scenario for scenario, _ in replies}.values()
    counts = Counts()
    for scenario in explored:
        counts.add(scenario.exploration.counts)
    different = [
        (scenario, reply) for scenario, reply in replies if reply.verdict is not Verdict.PROVED
    ]
    verdict, detail = Verdict.UNKNOWN, "the solvers gave up or disagree"
    if counts.unfinished:
        detail = "paths are unfinished"
    elif equal is not None:
        verdict, detail = Verdict.PROVED, f"a chunk {equal.words}"
    elif all(reply.verdict is Verdict.REFUTED for _, reply in different):
        first_different, _ = different[0]
        verdict, detail = _difference(release, first_different, candidates[0].rules)
    _, last = replies[-1]
    return Piece(
        question.claim,
        question.part,
        question.shape,
        verdict,
        last.z3,
        last.cvc5,
        sum(reply.resources for _, reply in replies),
        sum(reply.milliseconds for _, reply in replies),
        question.assumptions,
        counts,
        detail,
    )


def _compare(
    release: ReleaseSource, candidates: Sequence[KnownRules]
) -> tuple[list[tuple[CallScenario, Reply]], KnownRules | None]:
    """Every reply, and the first rules that the release equals on every shape."""
    scenarios: list[CallScenario] = []
    replies: list[tuple[CallScenario, Reply]] = []
    for candidate in candidates:
        for index, shape in enumerate(SHAPES):
            if index == len(scenarios):
                # Only when it is asked about: one shape on which they differ is enough.
                scenarios.append(CallScenario(release, shape))
            replies.append((scenarios[index], _equals(scenarios[index], candidate.rules)))
            if replies[-1][1].verdict is not Verdict.PROVED:
                break
        else:
            return replies, candidate
    return replies, None


def _equals(scenario: CallScenario, rules: ReleaseRules) -> Reply:
    condition = _condition(scenario, rules)
    # Building a condition may have named new positions of masks, hence new facts.
    exploration = scenario.exploration
    return always([*exploration.assumptions, *exploration.facts], condition)


def _condition(scenario: CallScenario, rules: ReleaseRules) -> z3.BoolRef:
    context = scenario.exploration.context
    rule = expected(scenario, rules)

    def holds(seen: CallSeen) -> BoolTerm:
        return seen.error is None and and_(*_agreements(seen, rule))

    return denote(scenario.tree, holds, context)


def _agreements(seen: CallSeen, rule: Expected) -> Iterator[BoolTerm]:
    for indices, conditions in _compared(seen, rule):
        for index, condition in enumerate(conditions):
            yield condition if index in indices else not_(condition)
        # In order, each once.
        yield list(indices) == sorted(set(indices))
    yield eq(seen.num_tokens, rule.num_tokens)
    yield eq(seen.encoder_budget, rule.encoder_budget)


def _compared(seen: CallSeen, rule: Expected) -> Iterator[tuple[tuple[int, ...], list[BoolTerm]]]:
    yield seen.chosen, [fate.chosen for fate in rule.fates]
    yield seen.loaded, [fate.loaded for fate in rule.fates]
    yield seen.hits, [fate.hit for fate in rule.fates]
    if seen.duplicates is not None:
        yield seen.duplicates, [fate.duplicate for fate in rule.fates]


def _difference(
    release: ReleaseSource, scenario: CallScenario, rules: ReleaseRules
) -> tuple[Verdict, str]:
    """The smallest input on which a call differs from the rules, run on plain integers."""
    exploration = scenario.exploration
    condition = _condition(scenario, rules)
    premises = [*exploration.assumptions, *exploration.facts]
    model = smallest_counterexample(premises, condition, scenario.sizes)
    if model is None:
        return Verdict.ERROR, "no model of the refutation"
    given = scenario.in_model(model)
    seen, rule = call_scheduling(release, given), expected(scenario, rules)
    agrees = seen.error is None and all(
        z3.is_true(model.eval(truth_term(c, exploration.context), model_completion=True))
        for c in _agreements(seen, rule)
    )
    if agrees:
        return Verdict.ERROR, f"{_describe(given)} does not replay as a difference"
    return Verdict.REFUTED, f"no known rule; the first differs at {_describe(given)}"


def _describe(given: CallInput) -> str:
    features = " ".join(
        f"{feature.identifier}[{feature.offset},{feature.offset + feature.length})"
        for feature in given.features
    )
    words = [
        f"{given.num_new_tokens} asked from {given.num_computed_tokens} on",
        *([f"shift {given.shift}"] if given.shift else []),
        *(["items whole"] if given.whole_items else []),
        *(["an encoder-decoder model"] if given.is_encoder_decoder else []),
        *(["a store"] if given.stored is not None else []),
    ]
    return f"{features or 'no feature'}: {', '.join(words)}"
