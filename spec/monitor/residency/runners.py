"""Whether both runners read the same where they ran the same (the claim ``runners-agree``)."""

from __future__ import annotations

from collections.abc import Mapping

from spec.history.history import History
from spec.monitor.residency.gathered import join_ranges, join_rows, write_ranges
from spec.record.run_findings import LoopFinding
from spec.record.steps import PassSeen, Read, Trace

_Rows = list[tuple[str, int, int]]


def compare_runners(trace_v1: Trace, trace_v2: Trace) -> tuple[LoopFinding, ...]:
    """Compare what the runners read, pass by pass, as long as scheduling was equal.

    Tensors are compared by the hash under which they are held, since V2 does not encode again what
    it holds. Passes in which a gather raised, or in which the workers do not hold the same hashes,
    are left out: that effect counts under the miss claims and ``views-agree``. Features lie in the
    prefill and are disjoint, so that a request whose shifted start is past its prefill, which V2
    does not look at, reads nothing in either runner.

    Args:
        trace_v1: the run on V1.
        trace_v2: the run of the same scenario on V2.

    Raises:
        ValueError: the traces are of two scenarios.
    """
    if trace_v1.scenario != trace_v2.scenario:
        raise ValueError("the traces are of two scenarios; compare runs of one")
    found: list[LoopFinding] = []
    histories = History(trace_v1.scenario), History(trace_v2.scenario)
    for step_v1, other in zip(trace_v1.steps, trace_v2.steps, strict=False):
        if step_v1.kind != other.kind or step_v1.calls != other.calls:
            break
        if step_v1.kind == "pass" and other.kind == "pass" and not _same_work(step_v1, other):
            break
        for history, step in zip(histories, (step_v1, other), strict=True):
            history.observe(step)
        if step_v1.kind == "pass" and other.kind == "pass":
            found += _compare_pass(step_v1, other, histories)
    return tuple(found)


def _same_work(step: PassSeen, other: PassSeen) -> bool:
    return (
        step.scheduled == other.scheduled
        and step.encoder_inputs == other.encoder_inputs
        and step.notices == other.notices
    )


def _compare_pass(
    step: PassSeen, other: PassSeen, histories: tuple[History, History]
) -> list[LoopFinding]:
    if step.worker is None or other.worker is None:
        return []
    history_v1, history_v2 = histories
    if history_v1.contents.keys() != history_v2.contents.keys():
        return []
    names, other_names = (
        {number: name for name, number in history.contents.items()} for history in histories
    )
    pairs = [("target", step.worker.target, other.worker.target)]
    if step.worker.drafter is not None and other.worker.drafter is not None:
        pairs.append(("drafter", step.worker.drafter, other.worker.drafter))
    found = []
    for reader, first, second in pairs:
        if first.error is not None or second.error is not None:
            continue
        difference = _difference(first, second, names, other_names)
        if difference is not None:
            what, seen, expected = difference
            found.append(
                LoopFinding(
                    "runners-agree",
                    step.index,
                    None,
                    None,
                    f"{reader}: V2 returns {what} {seen}",
                    f"{what} {expected}, as V1 does",
                    f"{reader}: {what} differ between the runners",
                )
            )
    return found


def _difference(
    first: Read, second: Read, names_v1: Mapping[int, str], names_v2: Mapping[int, str]
) -> tuple[str, str, str] | None:
    """What differs, in V2 and in V1; ``None`` where nothing does."""
    rows_v1, rows_v2 = _named_rows(first, names_v1), _named_rows(second, names_v2)
    if rows_v1 != rows_v2:
        return "rows", str(rows_v2), str(rows_v1)
    if first.slices != second.slices:
        return "slices", str(second.slices), str(first.slices)
    mask_v1, mask_v2 = join_ranges(first.mask), join_ranges(second.mask)
    if mask_v1 != mask_v2:
        return "mask", write_ranges(mask_v2), write_ranges(mask_v1)
    return None


def _named_rows(read: Read, names: Mapping[int, str]) -> _Rows:
    joined = join_rows((run.encoding, run.first_row, run.num_rows) for run in read.rows)
    return [
        (names.get(number, "a tensor not held"), first, count) for number, first, count in joined
    ]
