"""The guards of a correct engine that the transitions of the relation ask for.

Each comes from the rules of :mod:`spec.rules`, or is one of
the few that only the relation needs. They are gathered in one object so that a known fault is the
same relation with one of them replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spec.algebra import BoolTerm, IntTerm, and_, implies, not_, or_
from spec.rules import chunk_ends, encoder_inputs, free


def goes_by_progress(
    offset: IntTerm, length: IntTerm, num_computed_tokens: IntTerm, placeholders: IntTerm
) -> BoolTerm:
    """Whether progress lets a decoder-only reference go, without a margin."""
    return free.may_drop_reference(offset, length, num_computed_tokens, placeholders, 0)


def ends_before_refused(start: IntTerm, num_tokens: IntTerm, offset: IntTerm) -> BoolTerm:
    """Whether a chunk is within what is left of it by the cut at a refused feature."""
    return num_tokens <= chunk_ends.refused_cut(offset, start, num_tokens, 0)


def keeps_item_whole(
    offset: IntTerm, length: IntTerm, start: IntTerm, num_tokens: IntTerm, is_whole: BoolTerm
) -> BoolTerm:
    """Whether a chunk splits no item where it may not."""
    splits = chunk_ends.splits_item(offset, offset + length, start, num_tokens)
    return implies(is_whole, not_(splits))


def is_announced(evicted: BoolTerm, entry: BoolTerm) -> BoolTerm:
    """Whether a pass tells the worker to drop a tensor: evicted in it and not back (52482)."""
    return and_(evicted, not_(entry))


def leaves_with_victim(chosen: BoolTerm, referenced: BoolTerm) -> BoolTerm:
    """Whether an entry goes with the request that chose it.

    It was to be encoded in this pass for somebody who no longer runs, and nobody else holds it.
    """
    return and_(chosen, not_(referenced))


def may_evict(referenced: BoolTerm) -> BoolTerm:
    """Whether the room of an entry may be taken: nobody holds it."""
    return not_(referenced)


def waits_for_update(is_async: BoolTerm, passes: IntTerm) -> BoolTerm:
    """Whether a request may be scheduled, or let go by progress, with so many passes in flight."""
    return or_(is_async, passes <= 0)


def may_let_go(in_pass: BoolTerm) -> BoolTerm:
    """Whether progress may let references go now: not before the pass has run (38907)."""
    return not_(in_pass)


@dataclass(frozen=True)
class Guards:
    """The guards; each field is named after the function that a correct engine has there."""

    goes_by_progress: Callable[[IntTerm, IntTerm, IntTerm, IntTerm], BoolTerm] = goes_by_progress
    window_end: Callable[[IntTerm, IntTerm, IntTerm], IntTerm] = encoder_inputs.window_end
    ends_before_refused: Callable[[IntTerm, IntTerm, IntTerm], BoolTerm] = ends_before_refused
    keeps_item_whole: Callable[..., BoolTerm] = keeps_item_whole
    is_announced: Callable[[BoolTerm, BoolTerm], BoolTerm] = is_announced
    leaves_with_victim: Callable[[BoolTerm, BoolTerm], BoolTerm] = leaves_with_victim
    may_evict: Callable[[BoolTerm], BoolTerm] = may_evict
    waits_for_update: Callable[[BoolTerm, IntTerm], BoolTerm] = waits_for_update
    may_let_go: Callable[[BoolTerm], BoolTerm] = may_let_go


CORRECT = Guards()
"""The guards of a correct engine."""
