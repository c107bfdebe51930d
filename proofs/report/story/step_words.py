"""What one step of a run did, in a few words; nothing of why."""

from __future__ import annotations

from collections.abc import Iterable

from proofs.report.story.timeline_build import letters_of
from spec.record.prompts import Prompts
from spec.record.steps import ErrorSeen, EventSeen, PassSeen, Step, Trace, UpdateSeen

_EVENTS = {
    "arrival": "request {} arrives",
    "abort": "request {} is aborted",
    "continuation": "request {} gets its next input",
    "close": "request {} gets no further input",
    "reset": "the encoder cache is reset",
}


def moment(step: Step) -> str:
    """Which step it is."""
    match step.kind:
        case "event":
            return f"before pass {step.before}"
        case "pass":
            return f"pass {step.index}"
        case "update":
            return f"update {step.index}"


def words_of(trace: Trace) -> list[str]:
    """What each step did."""
    prompts, letters = Prompts(trace.scenario), letters_of(trace)
    sentences = []
    for step in trace.steps:
        prompts.observe(step)
        match step:
            case EventSeen():
                said = [_EVENTS[step.event].format(step.request)]
            case PassSeen():
                said = _pass(step, prompts, letters)
            case UpdateSeen():
                said = _update(step)
        sentences.append("; ".join([*said, *_error(step.error)]))
    return sentences


def _pass(step: PassSeen, prompts: Prompts, letters: dict[str, str]) -> list[str]:
    def items(inputs: Iterable[tuple[int, int]]) -> str:
        names = []
        for request, feature in inputs:
            item = prompts.features(request)[feature]
            names.append(f"{letters[item.identifier]}[{item.offset},{item.end})")
        return " ".join(names)

    said = [
        f"request {entry.request} runs [{entry.num_computed_tokens},"
        f"{entry.num_computed_tokens + entry.num_scheduled_tokens})"
        for entry in step.scheduled
    ] or ["nothing runs"]
    refused = [
        (call.request, call.feature)
        for call in step.calls
        if call.method == "can_allocate" and call.answer is False
    ]
    said += [f"request {request} is preempted" for request in step.preempted]
    if step.encoder_inputs:
        said.append(f"encodes {items(step.encoder_inputs)}")
    if refused:
        said.append(f"no room for {items(refused)}")
    if step.notices:
        said.append("drops " + " ".join(letters.get(name, name) for name in step.notices))
    if step.worker is not None:
        for reader, read in (("target", step.worker.target), ("drafter", step.worker.drafter)):
            if read is not None and read.error is not None:
                said.append(f"the {reader}'s gather raises {read.error.type}")
    return said


def _update(step: UpdateSeen) -> list[str]:
    said = []
    for outcome in step.outcomes:
        if outcome.rewound is not None:
            said.append(f"request {outcome.request} falls back to {outcome.rewound}")
        elif outcome.dropped:
            said.append(f"the output of request {outcome.request} is dropped")
        elif outcome.num_emitted:
            said.append(f"request {outcome.request} emits {outcome.num_emitted}")
    return said or ["no token"]


def _error(error: ErrorSeen | None) -> list[str]:
    return [] if error is None else [f"{error.type}: {error.message}"]
