"""*Free* of a release: what it lets go, as a formula, and whether that is safe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import z3

import proofs.smt.solvers  # noqa: F401 - registers z3's terms with the algebra
from proofs.source.ask.formulas import disjunction, simplest, written
from proofs.source.ask.piece import RULE, Piece, Question, settle, unmodelled
from proofs.source.ask.question import Reply, always, number_in
from proofs.source.code.book_calls import DropRecorder, FreeInput, call_free
from proofs.source.code.gather import FeatureInput
from proofs.source.code.release import ReleaseSource
from proofs.source.code.source_target import SourceTarget
from proofs.symbolic.exploration import BudgetExhausted, Exploration
from proofs.symbolic.integers import NotModelled
from proofs.symbolic.tree import Tree, denote, leaves
from spec.algebra import ite
from spec.claims import predicates as claims
from spec.claims.texts import function_claim
from spec.errors import described
from spec.functions.cases import Case, FreeCase, Progress
from spec.functions.findings import Finding
from spec.monitor.functions.free_moments import check_free
from spec.record.feature import Feature
from spec.rules.free import reference_may_go
from spec.verdict import Verdict

Dropped = tuple[int, ...]


class FreeScenario:
    """One run of *free* on up to three referenced features; everything symbolic and unbounded."""

    def __init__(self, release: ReleaseSource, count: int) -> None:
        self.count = count
        self.exploration = Exploration()
        integer, boolean = self.exploration.integer, self.exploration.boolean
        self.computed = integer("num_computed_tokens")
        self.placeholders = integer("num_output_placeholders")
        self.drafts = integer("num_drafts_in_flight")
        self.shift = integer("scheduler_shift")
        self.drafter = boolean("uses_drafter")
        self.encoder_decoder = boolean("is_encoder_decoder")
        names = [""] if count == 1 else [f"_{i}" for i in range(count)]
        self.offsets = [integer(f"offset{name}") for name in names]
        self.lengths = [integer(f"length{name}") for name in names]
        assume = self.exploration.assume
        assume(self.drafts.term >= 0, self.drafts.term <= self.placeholders.term)
        assume(self.placeholders.term <= self.computed.term)
        assume(self.shift.term >= 0, self.drafter.term == (self.shift.term > 0))
        assume(*(value.term >= 0 for value in self.offsets))
        assume(*(value.term >= 1 for value in self.lengths))
        assume(
            *(
                self.offsets[i + 1].term >= self.offsets[i].term + self.lengths[i].term
                for i in range(count - 1)
            )
        )
        self.tree: Tree[Dropped] = self.exploration.explore(lambda: self._run(release))

    def _run(self, release: ReleaseSource) -> Dropped:
        book = DropRecorder(self.count)
        features = tuple(
            FeatureInput(offset, length, f"feature-{i}", None, None)
            for i, (offset, length) in enumerate(zip(self.offsets, self.lengths, strict=True))
        )
        given = FreeInput(
            features,
            self.computed,
            self.placeholders,
            self.encoder_decoder,
            self.drafter,
            self.shift,
        )
        try:
            call_free(release, given, book, "request-0")
        except (NotModelled, BudgetExhausted, MemoryError):
            raise
        except Exception as error:
            raise NotModelled(f"free raises {described(error)}") from error
        return tuple(book.dropped)

    def is_safe(self, index: int) -> z3.BoolRef:
        """Whether nothing can read the feature again after this run."""
        end = self.offsets[index].term + self.lengths[index].term
        is_stored = self.encoder_decoder.term
        safe: z3.BoolRef = claims.freed_not_needed(
            True,
            needed_to=ite(is_stored, 1, end),
            lowest_progress=self.computed.term - ite(is_stored, 0, self.drafts.term),
        )
        return safe


@dataclass(frozen=True)
class RuleInstance:
    """The rule of *free* with its parameters chosen."""

    words: str
    margin: z3.ArithRef
    placeholders: z3.ArithRef
    is_the_rule: bool


def free_questions(count: int) -> list[Question]:
    """``freed-not-needed`` as it stands, and with features in the prompt only."""
    shape = f"{count} feature(s)"
    needed = function_claim("freed-not-needed")
    in_prompt = (*needed.assumptions, "features-in-prompt")
    return [
        Question(needed.id, "free past the prompt", shape, needed.assumptions),
        Question(needed.id, "free", shape, in_prompt),
    ]


def free_pieces(release: ReleaseSource, name: str, count: int) -> list[Piece]:
    """What :func:`free_questions` asks, on every path."""
    plain, in_prompt = free_questions(count)
    try:
        scenario = FreeScenario(release, count)
    except NotModelled as reason:
        return [unmodelled(plain, reason), unmodelled(in_prompt, reason)]
    target = SourceTarget(release, name)

    def replay(part: str, model: z3.ModelRef, _claim: str) -> tuple[Case, Sequence[Finding]]:
        case = _case(scenario, model)
        return case, check_free(case, target.free(case), f"{name} {part}")

    def holds(dropped: Dropped) -> z3.BoolRef:
        true = z3.BoolVal(True, scenario.exploration.context)
        return z3.And(true, *(scenario.is_safe(index) for index in dropped))

    sizes = [
        scenario.computed.term,
        scenario.placeholders.term,
        scenario.drafts.term,
        scenario.shift.term,
        *(value.term for value in (*scenario.lengths, *scenario.offsets)),
    ]
    prompt = z3.Int("prompt_end", scenario.exploration.context)
    ends = [o.term + x.term for o, x in zip(scenario.offsets, scenario.lengths, strict=True)]
    drafting_past_prompt = [
        *(end <= prompt for end in ends),
        z3.Implies(
            scenario.placeholders.term > 0,
            scenario.computed.term - scenario.drafts.term >= prompt,
        ),
    ]
    return [
        piece
        for question, also in ((plain, []), (in_prompt, drafting_past_prompt))
        for piece in settle(
            [(question, holds)],
            scenario.exploration,
            scenario.tree,
            sizes=sizes,
            replay=partial(replay, question.part),
            also=also,
        )
    ]


def free_rule_questions() -> list[Question]:
    """The rule by which one reference goes."""
    return [Question(f"{RULE}reference_may_go", "free", "1 feature")]


def free_rule_piece(release: ReleaseSource) -> Piece:
    """The exact rule by which one reference goes, and which instance of the rule it equals."""
    (question,) = free_rule_questions()
    try:
        scenario = FreeScenario(release, 1)
    except NotModelled as reason:
        return unmodelled(question, reason)
    context = scenario.exploration.context
    premises = scenario.exploration.assumptions
    goes = denote(scenario.tree, lambda dropped: bool(dropped), context)
    paths = [conditions for conditions, dropped in leaves(scenario.tree) if dropped]
    readable = simplest(premises, paths, context)
    same = always(premises, disjunction(readable, context) == goes)
    formula = written(readable)
    replies: list[Reply] = []
    instance: RuleInstance | None
    for instance in _instances(scenario):
        rule = reference_may_go(
            scenario.offsets[0].term,
            scenario.lengths[0].term,
            scenario.computed.term,
            instance.placeholders,
            instance.margin,
            scenario.encoder_decoder.term,
        )
        reply = always(premises, goes == rule)
        replies.append(reply)
        if reply.verdict is Verdict.PROVED:
            break
    else:
        instance = None
    words = "no instance of it" if instance is None else instance.words
    if instance is not None and instance.is_the_rule:
        verdict = replies[-1].verdict
    else:
        # Each instance of the rule proper was refuted before anything else was tried.
        proper = replies[: sum(i.is_the_rule for i in _instances(scenario))]
        refuted = all(reply.verdict is Verdict.REFUTED for reply in proper)
        verdict = Verdict.REFUTED if refuted else Verdict.UNKNOWN
        reply = proper[0]
    covered = always(premises, denote(scenario.tree, lambda _: True, context))
    unfinished = scenario.exploration.counts.unfinished
    if not (same.verdict is covered.verdict is Verdict.PROVED) or unfinished:
        verdict = Verdict.UNKNOWN
    return _rule_piece(question, verdict, reply, scenario, f"{formula}; {words}")


def _instances(scenario: FreeScenario) -> list[RuleInstance]:
    context = scenario.exploration.context
    zero, single = z3.IntVal(0, context), z3.IntVal(1, context)
    drafter_margin = z3.If(scenario.drafter.term, single, zero)
    margins = [
        ("margin 0", zero),
        ("margin 1 with a drafter, else 0", drafter_margin),
        ("margin = scheduler's shift", scenario.shift.term),
    ]
    return [
        RuleInstance(f"the rule with {words}", margin, scenario.placeholders.term, True)
        for words, margin in margins
    ] + [
        RuleInstance(f"the rule with {words}, but placeholders ignored", margin, zero, False)
        for words, margin in margins
    ]


def _rule_piece(
    question: Question, verdict: Verdict, reply: Reply, scenario: FreeScenario, detail: str
) -> Piece:
    return Piece(
        question.claim,
        question.part,
        question.shape,
        verdict,
        reply.z3,
        reply.cvc5,
        reply.resources,
        reply.milliseconds,
        counts=scenario.exploration.counts,
        detail=detail,
    )


def _case(scenario: FreeScenario, model: z3.ModelRef) -> FreeCase:
    number = partial(number_in, model)
    features = tuple(
        Feature(number(offset.term), number(length.term), "ABC"[index])
        for index, (offset, length) in enumerate(
            zip(scenario.offsets, scenario.lengths, strict=True)
        )
    )
    progress = Progress(
        number(scenario.computed.term),
        number(scenario.placeholders.term),
        number(scenario.drafts.term),
    )
    return FreeCase(
        features,
        sum(feature.num_rows for feature in features),
        (progress,),
        number(scenario.shift.term),
        z3.is_true(model.eval(scenario.encoder_decoder.term, model_completion=True)),
    )
