"""The reference with guards taken out or put in, one by one: what the ablation matrix is run on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from impl.faults import in_book, in_gathers, in_runs
from impl.reference.parts import Parts, with_methods
from impl.reference.scheduling.scheduled_request import SchedulerRequest
from impl.targets.runs import ReferenceLoop
from spec.rules.releases import ReleaseRules


def _without_reservation(parts: Parts) -> Parts:
    """A chunk may leave less of the prefill than the shift."""

    def reserved(self: Any, request: SchedulerRequest, start: int, num_tokens: int) -> int:
        return num_tokens

    return replace(parts, chunk_ends=with_methods(parts.chunk_ends, reserved=reserved))


def ablated_reference(rules: ReleaseRules, *, tolerates_boundary: bool) -> ReferenceLoop:
    """The reference engine with other guards; the shift and the look-ahead are configuration.

    Args:
        rules: what margin, cut and reservation are as; a margin is one token.
        tolerates_boundary: whether a boundary feature that is missing is skipped.
    """
    target = ReferenceLoop()
    parts = target.parts
    if rules.margin:
        parts = in_book.deferred_free_margin(parts)
    if not tolerates_boundary:
        parts = in_gathers.no_boundary_tolerance(parts)
    if rules.cut_shift == "shift":
        parts = in_runs.shifted_cut(parts)
    if rules.reservation == "off":
        parts = _without_reservation(parts)
    elif rules.reservation == "insisting":
        parts = in_runs.reservation_after_cut(parts)
    target.parts = parts
    return target
