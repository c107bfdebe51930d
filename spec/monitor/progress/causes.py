"""Who waits for what in a run that stands still, and what turns in one that goes in circles."""

from __future__ import annotations

from spec.monitor.progress.hidden_state import ACTIVE, HiddenState
from spec.record.config import EngineConfig
from spec.record.run_findings import LoopFinding
from spec.record.steps import Call, EngineState, PassSeen, RequestState

_STANDS_STILL = "a pass changes the state while a request is neither finished nor paused"
_TURNS = "no state comes back unless an event came or a request got further"

_HOLDERS = (
    "its own item that it has passed",
    "its own unfinished item",
    "its own repeated item",
    "its own item ahead",
    "items that it asked for before in the same pass",
    "another running request",
    "another waiting request",
    "a paused request",
    "a finished request",
)
"""Who may hold the room, in the order in which they are told."""


def describe_stall(
    step: PassSeen, state: EngineState, hidden: HiddenState, config: EngineConfig
) -> LoopFinding:
    """The finding for a pass without tokens that left the state as it was.

    It tells about the first request, in order of the queues, that was refused something; if nobody
    was, about the first that wants to run.
    """
    states = {item.request: item for item in state.requests}
    order = [r for r in (*state.running, *state.waiting) if r in states]
    order += [r for r, item in states.items() if item.status in ACTIVE and r not in order]
    refusals = _refusals(step)
    request = next((r for r in order if r in refusals), order[0])
    call = refusals.get(request)
    features = hidden.prompts.features(request)
    waiting = states[request]
    kind = _kind(waiting)
    where = f"stands at {waiting.num_computed_tokens} of {waiting.num_tokens} tokens"
    held = _held(state, hidden)
    feature: int | None = None
    if call is None:
        why, mechanism = _without_refusal(step, waiting)
    elif call.method == "allocate_slots":
        free = config.num_kv_blocks - sum(item.num_blocks for item in states.values())
        why = f"it is refused KV blocks for {call.budget} tokens, {free} blocks are unheld"
        mechanism = f"a {kind} request waits for KV blocks {_block_holders(states, request)}"
    else:
        feature = call.feature
        item = features[feature]
        room = state.book.num_freeable_slots
        room = state.book.num_free_slots if room is None else room
        why = f"{item.describe()} ({item.num_rows} rows) is refused"
        if call.chosen:
            why += f" behind {call.chosen} rows chosen before"
        if item.num_rows > call.budget:
            why += f", the encoder budget left is {call.budget}"
            spent = "items that it asked for before in the same pass" if call.chosen else "nobody"
            mechanism = f"a {kind} request waits for encoder budget spent on {spent}"
        else:
            why += f", {room} of {config.encoder_cache_size} slots can be freed{held}"
            holders = _room_holders(step, state, waiting, hidden, call)
            mechanism = f"a {kind} request waits for encoder cache room held by {holders}"
    return LoopFinding(
        claim="no-stall",
        pass_index=step.index,
        request=request,
        feature=feature,
        observed=f"nothing runs and nothing changes: request {request} ({kind}) {where}; {why}",
        expected=_STANDS_STILL,
        mechanism=mechanism,
        loop=(step.index, step.index),
    )


def _refusals(step: PassSeen) -> dict[int, Call]:
    """The last refusal of each request in the pass."""
    return {
        call.request: call
        for call in step.calls
        if call.answer is False and call.method in ("can_allocate", "allocate_slots")
    }


def _kind(state: RequestState) -> str:
    return "running" if state.status == "running" else "waiting"


def _without_refusal(step: PassSeen, waiting: RequestState) -> tuple[str, str]:
    kind = _kind(waiting)
    if any(call.request == waiting.request for call in step.calls):
        return "it is given no tokens though it is refused nothing", (
            f"a {kind} request gets a chunk of zero tokens without any refusal"
        )
    return "it is given no tokens and nothing is asked for it", (
        f"a {kind} request gets no tokens and nothing is asked for it"
    )


def _block_holders(states: dict[int, RequestState], request: int) -> str:
    others = {item.status for r, item in states.items() if r != request and item.num_blocks}
    if not others:
        return "that nobody else holds"
    words = {
        "running": "another running request",
        "waiting": "another waiting request",
        "preempted": "another waiting request",
        "paused": "a paused request",
    }
    return "held by " + " and ".join(sorted({words.get(s, "a finished request") for s in others}))


def _room_holders(
    step: PassSeen, state: EngineState, waiting: RequestState, hidden: HiddenState, refusal: Call
) -> str:
    states = {item.request: item for item in state.requests}
    found = set()
    for identifier, holders in state.book.references:
        for holder in holders:
            if holder == waiting.request:
                found.add(_own_item(waiting, identifier, hidden))
            else:
                found.add(_other(states.get(holder)))
    # References that were given back when the request could not run no longer show.
    hit = waiting.status != "running" and any(
        call.request == waiting.request and call.method == "check_and_update_cache" and call.answer
        for call in step.calls
    )
    if refusal.chosen or hit:
        found.add("items that it asked for before in the same pass")
    return " and ".join(words for words in _HOLDERS if words in found) or "nobody"


def _own_item(waiting: RequestState, identifier: str, hidden: HiddenState) -> str:
    progress = waiting.num_computed_tokens - waiting.num_output_placeholders
    places = [
        feature
        for feature in hidden.prompts.features(waiting.request)
        if feature.identifier == identifier
    ]
    if any(place.offset < progress < place.end for place in places):
        return "its own unfinished item"
    passed = [place for place in places if place.end <= progress]
    if not passed:
        return "its own item ahead"
    # Which occurrence is held does not show.
    return "its own repeated item" if len(passed) < len(places) else _HOLDERS[0]


def _other(holder: RequestState | None) -> str:
    if holder is None or holder.status in ("finished", "rejected"):
        return "a finished request"
    if holder.status == "paused":
        return "a paused request"
    return f"another {_kind(holder)} request"


def _held(state: EngineState, hidden: HiddenState) -> str:
    """The entries with references, as one reads them: ``; A[0,4) is referenced by request 0``."""
    holdings = []
    for identifier, holders in state.book.references:
        for holder in sorted(holders):
            places = [
                feature.describe()
                for feature in hidden.prompts.features(holder)
                if feature.identifier == identifier
            ]
            holdings.append(f"; {' '.join(places) or identifier} is referenced by request {holder}")
    return "".join(holdings)


def describe_thrash(loop: list[PassSeen], state: EngineState) -> LoopFinding:
    """The finding for a run that came back to the state in which the first of the passes began."""
    first, last = loop[0].index, loop[-1].index
    victims = sorted({request for step in loop for request in step.preempted})
    tokens = sum(entry.num_scheduled_tokens for step in loop for entry in step.scheduled)
    refused = any(
        call.answer is False and call.method == "can_allocate"
        for step in loop
        for call in step.calls
    )
    if len(victims) > 1:
        mechanism = "requests preempt each other in turn"
    elif victims:
        mechanism = "a request is preempted again and again before it gets further"
    elif tokens:
        mechanism = "tokens are computed again and again without a preemption"
    else:
        mechanism = "passes without tokens change the state in a circle"
    if refused:
        mechanism += " while encoder inputs are refused"
    concerned = victims or [item.request for item in state.requests if item.status in ACTIVE]
    preempts = f", preempt {_names(victims)}" if victims else ""
    return LoopFinding(
        claim="no-thrash",
        pass_index=last,
        request=concerned[0] if concerned else None,
        feature=None,
        observed=(
            f"after pass {last} the run is where it was before pass {first}: the passes between "
            f"run {tokens} tokens{preempts}, and nobody got further"
        ),
        expected=_TURNS,
        mechanism=mechanism,
        loop=(first, last),
    )


def _names(requests: list[int]) -> str:
    return " and ".join(f"request {request}" for request in requests)
