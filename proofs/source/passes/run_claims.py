"""What every step of a run must have done, claim by claim, as conditions on symbolic integers.

The conditions are those of the loop's monitor for a lone request, which judges
every counterexample again on plain integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import z3

from proofs.source.passes.run_moments import Moment, is_duplicate, moments
from proofs.source.passes.run_scenario import RunScenario
from spec.record.steps import Call, EngineState, PassSeen, Step

Condition: TypeAlias = z3.BoolRef | bool
_LETS_GO = ("free", "free_encoder_input")


def _no_error(moment: Moment) -> Iterator[Condition]:
    yield moment.step.error is None
    if moment.step.kind == "pass":
        yield not moment.step.rejected


def _target_resident(moment: Moment) -> Iterator[Condition]:
    window = moment.window
    if window is None:
        return
    for index in moment.features:
        if not _on_worker(moment, index):
            yield z3.Not(moment.reads(index, *window))


def _drafter_resident(moment: Moment) -> Iterator[Condition]:
    window = moment.window
    if window is None or not moment.scenario.shape.shift:
        return
    start, end = window
    for index in moment.features:
        if not _on_worker(moment, index):
            is_boundary = moment.bounds(index)[0] >= end
            # A tensor that the target misses already is one effect, and counts there.
            read = z3.And(
                moment.reads(index, start + 1, end + 1), z3.Not(moment.reads(index, start, end))
            )
            yield z3.Or(z3.Not(read), is_boundary)


def _on_worker(moment: Moment, index: int) -> bool:
    worker = moment.step.worker if moment.step.kind == "pass" else None
    return worker is not None and moment.name(index) in dict(worker.contents)


def _need_agrees(moment: Moment) -> Iterator[Condition]:
    window = moment.window
    if window is None:
        return
    start, end = window
    ahead = 1 if moment.scenario.shape.shift else 0
    stopped: z3.BoolRef = moment.false
    for index in moment.features:
        is_boundary = moment.bounds(index)[0] >= end
        cut = z3.And(is_boundary, _is_cut_whole(moment, index, start))
        how = moment.asked.get(index)
        if how is None:
            read = moment.reads(index, start, end + ahead)
            excused = z3.Or(cut, z3.And(is_boundary, stopped), is_duplicate(moment, index))
            yield z3.Or(z3.Not(read), excused)
            stopped = z3.Or(stopped, cut)
        elif how == "refused":
            stopped = z3.BoolVal(True, moment.scenario.exploration.context)


def _is_cut_whole(moment: Moment, index: int, start: z3.ArithRef) -> z3.BoolRef:
    scenario = moment.scenario
    if not scenario.shape.whole_items:
        return moment.false
    offset, length = moment.bounds(index)
    most = scenario.token_budget.term
    if scenario.threshold is not None:
        most = z3.If(scenario.threshold.term < most, scenario.threshold.term, most)
    return z3.And(offset < start + most, start + most < offset + length)


def _item_whole(moment: Moment) -> Iterator[Condition]:
    window = moment.window
    if window is None or not moment.scenario.shape.whole_items:
        return
    start, end = window
    for index in moment.features:
        offset, length = moment.bounds(index)
        yield z3.Or(z3.Not(z3.And(start <= offset, offset < end)), offset + length <= end)


def _slots_conserved(moment: Moment) -> Iterator[Condition]:
    book, rows, size = moment.step.state.book, moment.scenario.rows, moment.scenario.cache_size.term
    present = _sum(moment, [rows[name] for name in moment.entries])
    held = _sum(moment, [rows[name] for name, is_held in moment.entries.items() if is_held])
    yield moment.term(book.num_free_slots) == size - present
    if book.num_freeable_slots is not None:
        yield moment.term(book.num_freeable_slots) == size - held
    yield present <= size
    unreferenced = sorted(name for name, is_held in moment.entries.items() if not is_held)
    yield sorted(book.freeable) == unreferenced


def _sum(moment: Moment, terms: list[z3.ArithRef]) -> z3.ArithRef:
    return sum(terms, start=z3.IntVal(0, moment.scenario.exploration.context))


def _worker_bounded(moment: Moment) -> Iterator[Condition]:
    if moment.step.kind == "pass" and moment.step.worker is not None:
        names = [name for name, _ in moment.step.worker.contents]
        total = _sum(moment, [moment.scenario.rows[name] for name in names])
        yield total <= moment.scenario.cache_size.term


def _views_agree(moment: Moment) -> Iterator[Condition]:
    if moment.step.kind == "pass" and moment.step.worker is not None:
        yield dict(moment.step.worker.contents).keys() == moment.entries.keys()


def _evicted_not_live(moment: Moment) -> Iterator[Condition]:
    if moment.step.kind == "pass":
        yield not set(moment.step.notices) & moment.entries.keys()


def _freed_not_needed(moment: Moment) -> Iterator[Condition]:
    for call in moment.step.calls if moment.step.kind == "update" else ():
        if call.method == "free_encoder_input":
            offset, length = moment.bounds(call.feature)
            yield offset + length <= moment.progress


def _dropped_in_update(moment: Moment) -> Iterator[Condition]:
    calls = [call for call in moment.step.calls if call.method in _LETS_GO]
    lost = [n for n, held in moment.entries_before.items() if held and not moment.entries.get(n)]
    if moment.step.kind != "pass":
        yield bool(calls) or not lost
        return
    may_drop = bool(moment.step.rejected) or (
        not moment.step.scheduled and moment.status != "running"
    )
    yield may_drop or not (lost or any(_held_before(moment, call) for call in calls))


def _held_before(moment: Moment, let_go: Call) -> bool:
    names = {moment.name(i) for i in moment.features if let_go.feature in (-1, i)}
    if any(moment.entries_before.get(name) for name in names):
        return True
    earlier = moment.step.calls[: moment.step.calls.index(let_go)]
    return any(
        moment.name(call.feature) in names
        for call in earlier
        if call.method == "allocate" or (call.method == "check_and_update_cache" and call.answer)
    )


def _held_until_last_use(moment: Moment) -> Iterator[Condition]:
    for index in moment.features:
        if not moment.entries.get(moment.name(index)):
            yield z3.Not(moment.taken[index])


def _released(moment: Moment) -> Iterator[Condition]:
    if moment.status == "finished":
        yield not any(moment.entries.values())


def _no_idle_references(moment: Moment) -> Iterator[Condition]:
    if moment.is_pass and moment.status in ("waiting", "preempted"):
        yield not any(moment.entries.values())


def _no_stall(moment: Moment) -> Iterator[Condition]:
    step, before = moment.step, moment.before
    if isinstance(step, PassSeen) and not step.scheduled and step.error is None:
        assert before is not None
        yield z3.Not(_same(moment, before, step.state))


def _no_thrash(moment: Moment) -> Iterator[Condition]:
    """A state that was left is not back unless the request has come further in the meantime."""
    for place, (start, _) in enumerate(moment.rounds[:-1]):
        later = moment.rounds[place + 1 :]
        states = [state for state, _ in later]
        # A round that runs tokens leaves the state in which it began.
        differs = [z3.Not(_same(moment, start, state)) for state in states[:-1]]
        left = (
            z3.Not(moment.false) if any(ran for _, ran in later) else z3.Or(moment.false, *differs)
        )
        grew = [_came_further(moment, start, state) for state in states]
        yield z3.Or(z3.Not(left), z3.Not(_same(moment, start, states[-1])), *grew)


def _came_further(moment: Moment, state: EngineState, later: EngineState) -> z3.BoolRef:
    """Whether the request has more tokens computed, or more generated."""
    (first,), (second,) = state.requests, later.requests
    computed = moment.term(second.num_computed_tokens) > moment.term(first.num_computed_tokens)
    return z3.Or(computed, moment.term(second.num_tokens) > moment.term(first.num_tokens))


def _same(moment: Moment, one: EngineState, other: EngineState) -> z3.BoolRef:
    """Whether two states are the same to the next pass."""
    (first,), (second,) = one.requests, other.requests
    if _plain(one) != _plain(other):
        return moment.false
    pairs = [
        (first.num_computed_tokens, second.num_computed_tokens),
        (first.num_output_placeholders, second.num_output_placeholders),
        (first.num_draft_tokens, second.num_draft_tokens),
        (first.num_tokens, second.num_tokens),
        (one.book.num_free_slots, other.book.num_free_slots),
    ]
    return z3.And(*(moment.term(a) == moment.term(b) for a, b in pairs))


def _plain(state: EngineState) -> tuple[object, ...]:
    """What of a state is enumerated: the same on all inputs of a path."""
    book = state.book
    references = dict(book.references)
    return (state.requests[0].status, state.waiting, state.running, references, book.freeable)


RULES: dict[str, Callable[[Moment], Iterator[Condition]]] = {
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
    """The conditions of every claim on the paths of one run.

    Args:
        scenario: the run.
    """

    def __init__(self, scenario: RunScenario) -> None:
        self._scenario = scenario
        self._moments: dict[int, list[Moment]] = {}

    def holds(self, claim: str, steps: tuple[Step, ...]) -> z3.BoolRef:
        """The condition under which every step of one path satisfies a claim.

        A step that broke off leaves everything half done: it counts as its error alone. Paths are
        told apart by their identity; the scenario's tree keeps them.
        """
        if id(steps) not in self._moments:
            self._moments[id(steps)] = moments(self._scenario, steps)
        conditions = [
            condition
            for moment in self._moments[id(steps)]
            if moment.step.error is None or claim == "no-error"
            for condition in RULES[claim](moment)
            if condition is not True
        ]
        true = z3.BoolVal(True, self._scenario.exploration.context)
        return z3.And(true, *conditions) if conditions else true
