"""In which order a pass admitted the requests that it runs.

The batch of a pass has the order in which its worker runs it: V2 puts short ranges first, so that
its gathers and its attention see them together. Who was admitted before whom is read from the KV
blocks that requests asked for: each that runs was granted room when its turn came.
"""

from __future__ import annotations

from spec.record.steps import PassSeen, ScheduledRequest


def by_admission(step: PassSeen) -> tuple[ScheduledRequest, ...]:
    """The batch in the order in which the pass admitted its requests.

    A request that was granted no KV blocks, which only a faulty engine runs, comes first.
    """
    turns = {
        call.request: turn
        for turn, call in enumerate(step.calls)
        if call.method == "allocate_slots" and call.answer
    }
    return tuple(sorted(step.scheduled, key=lambda scheduled: turns.get(scheduled.request, -1)))
