"""The reference with guards taken out or put in, one by one: what the ablation matrix is run on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from impl.faults import in_book, in_gathers, in_runs
from impl.reference.parts import Parts, with_methods
from impl.reference.scheduling.scheduled_request import SchedulerRequest
from impl.targets.runs import ReferenceLoop


def _without_reservation(parts: Parts) -> Parts:
    """A chunk may leave less of the prefill than the shift."""

    def reserved(self: Any, request: SchedulerRequest, start: int, num_tokens: int) -> int:
        return num_tokens

    return replace(parts, chunk_ends=with_methods(parts.chunk_ends, reserved=reserved))


def ablated_reference(
    *,
    margin: Literal[0, 1],
    tolerates_boundary: bool,
    cut: Literal["plain", "shifted"],
    reservation: Literal["off", "yielding", "insisting"],
) -> ReferenceLoop:
    """The reference engine with the given guards; the shift and the look-ahead are configuration.

    Args:
        margin: tokens past a feature's end that progress must be before its reference goes.
        tolerates_boundary: whether a boundary feature that is missing is skipped.
        cut: where a chunk ends before a refused feature: at it, or the shift before it.
        reservation: what a chunk near the prefill's end does about the shift.
    """
    target = ReferenceLoop()
    parts = target.parts
    if margin:
        parts = in_book.deferred_free_margin(parts)
    if not tolerates_boundary:
        parts = in_gathers.no_boundary_tolerance(parts)
    if cut == "shifted":
        parts = in_runs.shifted_cut(parts)
    if reservation == "off":
        parts = _without_reservation(parts)
    elif reservation == "insisting":
        parts = in_runs.reservation_after_cut(parts)
    target.parts = parts
    return target
