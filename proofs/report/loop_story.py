"""A run told in small integers, for the reviewer of a ready test."""

from __future__ import annotations

from collections.abc import Iterable

from impl.target import RUNNERS, Runner
from proofs.report.literals import printable
from proofs.report.loop_reach import reach_of_scenario
from proofs.report.ready_test import environment
from proofs.search.loop.describe import describe_scenario
from spec.loop.claims import loop_claim
from spec.loop.findings import LoopFinding
from spec.loop.prompts import Prompts
from spec.loop.scenario import Scenario
from spec.loop.steps import EngineState, EventSeen, PassSeen, Step, Trace, UpdateSeen
from spec.observations import ErrorSeen

_MOST_LINES = 24
"""A longer run is told from its end, where the fault shows."""

_EVENTS = {
    "arrival": "request {} arrives",
    "abort": "request {} is aborted",
    "continuation": "request {} gets its next input",
    "reset": "the encoder cache is reset",
}


def story(
    finding: LoopFinding,
    scenario: Scenario,
    trace: Trace,
    test_name: str | None = None,
    *,
    runners: tuple[Runner, ...],
) -> str:
    """The page beside a ready test, as Markdown.

    Args:
        finding: what was found.
        scenario: the smallest run that shows it.
        trace: what was seen in it.
        test_name: file of the ready test; ``None`` where there is none.
        runners: model runners that show it.
    """
    claim = loop_claim(finding.claim)
    return (
        environment()
        .get_template("loop_story.md.jinja")
        .render(
            claim=claim,
            mechanism=printable(finding.mechanism),
            fingerprint=finding.fingerprint,
            target=printable(trace.target),
            runner=trace.runner,
            both=len(runners) == len(RUNNERS),
            observed=printable(finding.observed),
            expected=printable(finding.expected),
            run=printable(describe_scenario(scenario)),
            shape=printable(finding.shape),
            lines=_lines(finding, trace),
            reach=reach_of_scenario(scenario, runners),
            why=claim.why[0].upper() + claim.why[1:],
            worker="a stand-in that keeps the order of the release's runner",
            on_worker=any(step.kind == "pass" and step.worker for step in trace.steps),
            has_store=any(r.prefix_hits or r.failed_loads for r in scenario.requests),
            scenario=scenario,
            test_name=test_name,
        )
    )


def _lines(finding: LoopFinding, trace: Trace) -> list[str]:
    """One line for each step up to where the finding shows."""
    prompts = Prompts(trace.scenario)
    last = finding.pass_index if finding.loop is None else max(finding.loop[1], finding.pass_index)
    lines = []
    for step in trace.steps:
        place = step.before if step.kind == "event" else step.index
        prompts.observe(step)
        if place > last:
            continue
        lines.append(printable(_tell(step, prompts)))
    if len(lines) > _MOST_LINES:
        left_out = len(lines) - _MOST_LINES
        return [f"({left_out} steps before are left out.)", *lines[left_out:]]
    return lines


def _tell(step: Step, prompts: Prompts) -> str:
    match step:
        case EventSeen():
            return _tell_event(step, prompts)
        case PassSeen():
            return _tell_pass(step, prompts)
        case UpdateSeen():
            return _tell_update(step)


def _tell_event(step: EventSeen, prompts: Prompts) -> str:
    told = f"Before pass {step.before}: {_EVENTS[step.event].format(step.request)}"
    if step.event == "arrival":
        tokens = {state.request: state.num_tokens for state in step.state.requests}
        items = " ".join(f.describe() for f in prompts.features(step.request)) or "text"
        told += f" ({items} of {tokens.get(step.request, 0)})"
    return told + _error(step.error)


def _tell_pass(step: PassSeen, prompts: Prompts) -> str:
    said = []
    for entry in step.scheduled:
        end = entry.num_computed_tokens + entry.num_scheduled_tokens
        drafts = f", {entry.num_draft_tokens} of them drafts" if entry.num_draft_tokens else ""
        said.append(f"request {entry.request} runs [{entry.num_computed_tokens},{end}){drafts}")
    if step.error is not None:
        said.append("scheduling fails")
    elif not said:
        said.append("nothing runs")
    said += [f"request {request} is preempted" for request in step.preempted]
    said += _tell_refusals(step, prompts)
    if step.encoder_inputs:
        said.append("to be encoded: " + _items(step.encoder_inputs, prompts))
    if step.notices:
        said.append("the worker is to drop " + ", ".join(step.notices))
    if step.worker is not None:
        done = {(encoding.request, encoding.feature) for encoding in step.worker.encoded}
        skipped = [item for item in step.encoder_inputs if item not in done]
        if skipped:
            said.append("the worker does not encode " + _items(skipped, prompts))
        held = ", ".join(name for name, _ in step.worker.contents)
        said.append(f"the worker holds {held or 'nothing'}")
        errors = {
            read.error.message.rstrip("."): None
            for read in (step.worker.target, step.worker.drafter)
            if read is not None and read.error is not None
        }
        said += [f"the gather fails: {message}" for message in errors]
    return f"Pass {step.index}: {'; '.join(said)}" + _error(step.error) + _standing(step.state)


def _tell_refusals(step: PassSeen, prompts: Prompts) -> list[str]:
    said = []
    for call in step.calls:
        if call.answer is False and call.method == "can_allocate":
            said.append(f"no room for {_items([(call.request, call.feature)], prompts)}")
        elif call.answer is False and call.method == "allocate_slots":
            said.append(f"request {call.request} is refused KV blocks for {call.budget} tokens")
    return said


def _tell_update(step: UpdateSeen) -> str:
    said = []
    for outcome in step.outcomes:
        if outcome.rewound is not None:
            said.append(f"request {outcome.request} falls back to {outcome.rewound}")
        elif outcome.dropped:
            said.append(f"the output of request {outcome.request} is dropped")
        elif outcome.num_emitted:
            said.append(f"request {outcome.request} emits {outcome.num_emitted}")
    return f"Update of pass {step.index}: {'; '.join(said) or 'no token'}" + (
        _error(step.error) + _standing(step.state)
    )


def _items(inputs: Iterable[tuple[int, int]], prompts: Prompts) -> str:
    return ", ".join(
        f"{prompts.features(request)[feature].describe()} of request {request}"
        for request, feature in inputs
    )


def _standing(state: EngineState) -> str:
    """Where each unfinished request stands, and who holds what."""
    said = [
        f"request {r.request} {r.status} at {r.num_computed_tokens} of {r.num_tokens}"
        for r in state.requests
        if r.status not in ("finished", "rejected")
    ]
    for name, holders in state.book.references:
        who = " and ".join(f"request {request}" for request in holders)
        said.append(f"{name} held by {who}" if who else f"{name} held by nobody")
    return f". Then: {'; '.join(said)}" if said else ""


def _error(error: ErrorSeen | None) -> str:
    if error is None:
        return ""
    return f"; {error.type}: {error.message}" if error.message else f"; {error.type}"
