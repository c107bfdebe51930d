"""Whether a step of a run is the model's: states, actions and observations."""

from __future__ import annotations

from collections.abc import Iterator

from spec.model.layout import Layout
from spec.model.run import ModelPass, ModelStep, ModelUpdate
from spec.model.state import ABSENT, FINISHED, STATUS_NAMES, PassRecord, State
from spec.record.steps import EngineState, EventSeen, PassSeen, Step, UpdateSeen, WorkerSeen


def disagreement(
    layout: Layout, model: ModelStep, seen: Step, *, with_calls: bool = True
) -> str | None:
    """The first thing in which a step differs from the model's, or ``None``.

    Counts of requests that ended are nobody's business any more and not compared.

    Args:
        layout: of the scenario.
        model: the model's step.
        seen: the step of a target.
        with_calls: whether what was asked of the book was recorded.
    """
    for name, expected, got in _pairs(layout, model, seen, with_calls):
        if expected != got:
            return f"{name}: the model has {expected}, the target {got}"
    return None


def _pairs(
    layout: Layout, model: ModelStep, seen: Step, with_calls: bool
) -> Iterator[tuple[str, object, object]]:
    yield "error", model.error is not None, seen.error is not None
    if isinstance(model, ModelPass):
        yield "kind of step", ("pass", model.index), (seen.kind, _number(seen))
        if isinstance(seen, PassSeen) and model.error is None:
            yield from _pass_pairs(layout, model.record, model.state, seen)
    elif isinstance(model, ModelUpdate):
        yield "kind of step", ("update", model.index), (seen.kind, _number(seen))
        if isinstance(seen, UpdateSeen) and model.error is None:
            yield (
                "outcomes",
                model.record.outcomes,
                tuple(
                    (
                        outcome.request,
                        outcome.num_accepted,
                        outcome.num_emitted,
                        outcome.dropped,
                        -1 if outcome.rewound is None else outcome.rewound,
                    )
                    for outcome in seen.outcomes
                ),
            )
    else:
        yield "kind of step", ("event", model.index), (seen.kind, _number(seen))
        if isinstance(seen, EventSeen):
            yield "event", (model.event, model.request), (seen.event, seen.request)
    if model.error is None:
        if with_calls:
            yield "calls", model.calls, seen.calls
        yield from _state_pairs(layout, model.state, seen.state)


def _number(seen: Step) -> int:
    return seen.before if isinstance(seen, EventSeen) else seen.index


def _pass_pairs(
    layout: Layout, record: PassRecord, state: State, seen: PassSeen
) -> Iterator[tuple[str, object, object]]:
    yield (
        "batch",
        record.scheduled,
        tuple(
            (
                entry.request,
                entry.num_computed_tokens,
                entry.num_scheduled_tokens,
                entry.num_draft_tokens,
                entry.num_output_placeholders,
                entry.prefill_len,
                entry.started,
            )
            for entry in seen.scheduled
        ),
    )
    yield (
        "encoder inputs",
        record.inputs,
        tuple(layout.first[request] + feature for request, feature in seen.encoder_inputs),
    )
    yield "notices", tuple(layout.names[name] for name in record.notices), seen.notices
    yield "preempted", record.preempted, seen.preempted
    yield "rejected", (), seen.rejected
    if seen.worker is not None:
        yield "worker", state.worker, _contents(layout, seen.worker)


def _contents(layout: Layout, worker: WorkerSeen) -> int:
    held = 0
    for name, _ in worker.contents:
        held |= 1 << layout.names.index(name)
    return held


def _state_pairs(
    layout: Layout, state: State, seen: EngineState
) -> Iterator[tuple[str, object, object]]:
    # Most steps agree: what tells two apart is put together once, and told as a whole.
    yield (
        "requests (status, then counts unless it ended)",
        {
            number: (STATUS_NAMES[status], computed, placeholders, drafts, known_tokens, blocks)
            if status != FINISHED
            else ("finished",)
            for number, (
                status,
                computed,
                placeholders,
                drafts,
                known_tokens,
                blocks,
                _,
                _,
            ) in enumerate(state.requests)
            if status != ABSENT
        },
        {
            other.request: (
                other.status,
                other.num_computed_tokens,
                other.num_output_placeholders,
                other.num_draft_tokens,
                other.num_tokens,
                other.num_blocks,
            )
            if other.status != "finished"
            else ("finished",)
            for other in seen.requests
        },
    )
    yield "waiting", state.waiting, seen.waiting
    yield "running", state.running, seen.running
    book = seen.book
    names = layout.names
    yield (
        "references",
        {
            name: set(layout.holders(state.held & layout.sharing[number]))
            for number, name in enumerate(names)
            if state.entries >> number & 1
        },
        {name: set(holders) for name, holders in book.references},
    )
    yield "freeable", tuple(names[name] for name in state.freeable), book.freeable
    yield "free slots", state.free, book.num_free_slots
    if book.num_freeable_slots is not None:
        yield "freeable slots", state.freeable_slots, book.num_freeable_slots
