"""What every step of a run must have done, claim by claim, as conditions on symbolic integers.

What a claim says is in :mod:`spec.claims.predicates`, where the loop's monitor has it from, which
judges every counterexample again on plain integers. Here it is asked of each step of a lone
request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from proofs.source.passes.run_moments import (
    FeatureOfRun,
    Moment,
    is_duplicate,
    is_still_read,
    moments,
)
from proofs.source.passes.run_scenario import RunScenario
from proofs.symbolic.integers import AnyInt
from spec.algebra import BoolTerm, and_, eq, implies, min_, not_, or_
from spec.claims import predicates as claims
from spec.record.steps import Call, EngineState, PassSeen, Step

_LETS_GO = ("free", "free_encoder_input")


def _no_error(moment: Moment) -> Iterator[BoolTerm]:
    yield moment.step.error is None
    if moment.step.kind == "pass":
        yield not moment.step.rejected


def _features_and_chunk(moment: Moment) -> Iterator[tuple[FeatureOfRun, claims.Chunk]]:
    """The features of a request that runs in the step, each with what the pass runs."""
    if moment.chunk is not None:
        for feature in moment.features:
            yield feature, moment.chunk


def _target_resident(moment: Moment) -> Iterator[BoolTerm]:
    for feature, chunk in _features_and_chunk(moment):
        yield claims.target_resident(feature, chunk, _on_worker(moment, feature))


def _drafter_resident(moment: Moment) -> Iterator[BoolTerm]:
    for feature, chunk in _features_and_chunk(moment):
        resident = _on_worker(moment, feature)
        # A tensor that the target misses already is one effect, and counts there.
        yield implies(
            claims.target_resident(feature, chunk, resident),
            claims.drafter_resident_or_boundary(feature, chunk, resident),
        )


def _on_worker(moment: Moment, feature: FeatureOfRun) -> bool:
    worker = moment.step.worker if moment.step.kind == "pass" else None
    return worker is not None and feature.name in dict(worker.contents)


def _need_agrees(moment: Moment) -> Iterator[BoolTerm]:
    search_ended: BoolTerm = False
    for feature, chunk in _features_and_chunk(moment):
        how = moment.asked.get(feature.index)
        cut = how is None and and_(
            claims.is_at_boundary(feature, chunk), _cut_whole(moment, feature, chunk)
        )
        search_ended = or_(search_ended, cut)
        asked = how is not None or is_duplicate(moment, feature)
        yield claims.need_agrees(feature, chunk, asked, search_ended)
        search_ended = or_(search_ended, how == "refused")


def _cut_whole(moment: Moment, feature: FeatureOfRun, chunk: claims.Chunk) -> BoolTerm:
    """Whether the request, which has the whole budget, lacked tokens to finish the item."""
    scenario = moment.scenario
    if not scenario.shape.whole_items:
        return False
    tokens: AnyInt = scenario.token_budget
    if scenario.threshold is not None:
        tokens = min_(scenario.threshold, tokens)
    cut: BoolTerm = claims.cut_before_whole_item(feature, chunk.start, tokens, tokens)
    return cut


def _item_whole(moment: Moment) -> Iterator[BoolTerm]:
    if moment.scenario.shape.whole_items:
        for feature, chunk in _features_and_chunk(moment):
            yield claims.item_whole(feature, chunk)


def _slots_conserved(moment: Moment) -> Iterator[BoolTerm]:
    book, rows, size = moment.step.state.book, moment.scenario.rows, moment.scenario.cache_size
    present = sum(rows[name] for name in moment.entries)
    held = sum(rows[name] for name, is_held in moment.entries.items() if is_held)
    free: AnyInt = book.num_free_slots
    freeable: AnyInt = size - held
    if book.num_freeable_slots is not None:
        freeable = book.num_freeable_slots
    yield claims.slots_conserved(free, freeable, present, held, size)
    yield len(book.freeable) == len(set(book.freeable))
    for name in {*moment.entries, *book.freeable}:
        yield claims.freeable_is_unreferenced(
            name in book.freeable, name in moment.entries, moment.entries.get(name, False)
        )


def _worker_bounded(moment: Moment) -> Iterator[BoolTerm]:
    if moment.step.kind == "pass" and moment.step.worker is not None:
        names = [name for name, _ in moment.step.worker.contents]
        total = sum(moment.scenario.rows[name] for name in names)
        yield claims.worker_bounded(total, moment.scenario.cache_size)


def _views_agree(moment: Moment) -> Iterator[BoolTerm]:
    if moment.step.kind == "pass" and moment.step.worker is not None:
        contents = dict(moment.step.worker.contents)
        for name in contents.keys() | moment.entries.keys():
            yield claims.views_agree(name in moment.entries, name in contents)


def _evicted_not_live(moment: Moment) -> Iterator[BoolTerm]:
    for name in moment.step.notices if moment.step.kind == "pass" else ():
        yield claims.evicted_not_live(True, name in moment.entries)


def _freed_not_needed(moment: Moment) -> Iterator[BoolTerm]:
    for call in moment.step.calls if moment.step.kind == "update" else ():
        if call.method == "free_encoder_input":
            yield claims.freed_not_needed(True, moment.features[call.feature].end, moment.progress)


def _dropped_in_update(moment: Moment) -> Iterator[BoolTerm]:
    step = moment.step
    calls = [call for call in step.calls if call.method in _LETS_GO]
    may_drop = bool(calls)
    if step.kind == "pass":
        may_drop = bool(step.rejected) or (not step.scheduled and moment.status != "running")
        for call in calls:
            yield claims.dropped_in_update(_held_before(moment, call), False, may_drop)
    for name, held in moment.entries_before.items():
        yield claims.dropped_in_update(held, moment.entries.get(name, False), may_drop)


def _held_before(moment: Moment, let_go: Call) -> bool:
    names = {f.name for f in moment.features if let_go.feature in (-1, f.index)}
    if any(moment.entries_before.get(name) for name in names):
        return True
    earlier = moment.step.calls[: moment.step.calls.index(let_go)]
    return any(
        moment.features[call.feature].name in names
        for call in earlier
        if call.method == "allocate" or (call.method == "check_and_update_cache" and call.answer)
    )


def _held_until_last_use(moment: Moment) -> Iterator[BoolTerm]:
    for feature in moment.features:
        referenced = moment.entries.get(feature.name, False)
        is_needed = is_still_read(moment, feature)
        yield claims.held_until_last_use(moment.taken[feature.index], is_needed, referenced)


def _released(moment: Moment) -> Iterator[BoolTerm]:
    has_ended = moment.status == "finished"
    for held in moment.entries.values():
        yield claims.released(has_ended, held)


def _no_idle_references(moment: Moment) -> Iterator[BoolTerm]:
    is_idle = moment.status in ("waiting", "preempted")
    for held in moment.entries.values() if moment.is_pass else ():
        yield claims.no_idle_references(is_idle, False, held)


def _no_stall(moment: Moment) -> Iterator[BoolTerm]:
    step, before = moment.step, moment.before
    if isinstance(step, PassSeen) and not step.scheduled and step.error is None:
        assert before is not None
        yield not_(_same(before, step.state))


def _no_thrash(moment: Moment) -> Iterator[BoolTerm]:
    """A state that was left is not back unless the request has come further in the meantime."""
    for place, (start, _) in enumerate(moment.rounds[:-1]):
        later = moment.rounds[place + 1 :]
        states = [state for state, _ in later]
        # A round that runs tokens leaves the state in which it began.
        differs = [not_(_same(start, state)) for state in states[:-1]]
        left = True if any(ran for _, ran in later) else or_(*differs)
        grew = [_came_further(start, state) for state in states]
        yield or_(not_(left), not_(_same(start, states[-1])), *grew)


def _came_further(state: EngineState, later: EngineState) -> BoolTerm:
    """Whether the request has more tokens computed, or more generated."""
    (first,), (second,) = state.requests, later.requests
    computed = second.num_computed_tokens > first.num_computed_tokens
    return or_(computed, second.num_tokens > first.num_tokens)


def _same(state: EngineState, later_state: EngineState) -> BoolTerm:
    """Whether two states are the same to the next pass."""
    (first,), (second,) = state.requests, later_state.requests
    if _plain(state) != _plain(later_state):
        return False
    pairs = [
        (first.num_computed_tokens, second.num_computed_tokens),
        (first.num_output_placeholders, second.num_output_placeholders),
        (first.num_draft_tokens, second.num_draft_tokens),
        (first.num_tokens, second.num_tokens),
        (state.book.num_free_slots, later_state.book.num_free_slots),
    ]
    return and_(*(eq(a, b) for a, b in pairs))


def _plain(state: EngineState) -> tuple[object, ...]:
    """What of a state is enumerated: the same on all inputs of a path."""
    book = state.book
    references = dict(book.references)
    return (state.requests[0].status, state.waiting, state.running, references, book.freeable)


RULES: dict[str, Callable[[Moment], Iterator[BoolTerm]]] = {
    "no-error": _no_error,
    "target-resident": _target_resident,
    "drafter-resident-or-boundary": _drafter_resident,
    "need-agrees": _need_agrees,
    "item-whole": _item_whole,
    "slots-conserved": _slots_conserved,
    "views-agree": _views_agree,
    "worker-bounded": _worker_bounded,
    "evicted-not-live": _evicted_not_live,
    "freed-not-needed": _freed_not_needed,
    "dropped-in-update": _dropped_in_update,
    "held-until-last-use": _held_until_last_use,
    "no-idle-references": _no_idle_references,
    "released": _released,
    "no-stall": _no_stall,
    "no-thrash": _no_thrash,
}
"""The conditions of each claim, in the order in which claims are reported."""


class Conditions:
    """The conditions of every claim on the paths of one run."""

    def __init__(self, scenario: RunScenario) -> None:
        self._scenario = scenario
        self._moments: dict[int, list[Moment]] = {}

    def holds(self, claim: str, steps: tuple[Step, ...]) -> BoolTerm:
        """The condition under which every step of one path satisfies a claim.

        A step that broke off leaves everything half done: it counts as its error alone. Paths are
        told apart by their identity; the scenario's tree keeps them.
        """
        if id(steps) not in self._moments:
            self._moments[id(steps)] = moments(self._scenario, steps)
        return and_(
            *(
                condition
                for moment in self._moments[id(steps)]
                if moment.step.error is None or claim == "no-error"
                for condition in RULES[claim](moment)
            )
        )
