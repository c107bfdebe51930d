"""Which encoder inputs a chunk asks for, and whether one has room.

``start`` is a request's progress at the start of the pass, prefix hits included (tokens).
"""

from __future__ import annotations

from spec.algebra import BoolTerm, IntTerm, and_


def window_end(start: IntTerm, num_tokens: IntTerm, shift: IntTerm) -> IntTerm:
    """End of the window in which a chunk asks for encoder inputs (29750, 32469)."""
    return start + num_tokens + shift


def is_asked_for(offset: IntTerm, end: IntTerm, start: IntTerm, window: IntTerm) -> BoolTerm:
    """Whether a dense feature ``[offset, end)`` is asked for in the window ``[start, window)``."""
    return and_(end > start, offset < window)


def has_room(
    rows: IntTerm, encoder_budget: IntTerm, chosen_rows: IntTerm, num_freeable_slots: IntTerm
) -> BoolTerm:
    """Whether an output fits the encoder budget and, evictions included, the cache.

    Args:
        rows: rows of the output.
        encoder_budget: rows that the encoder may still compute.
        chosen_rows: rows chosen before in the pass and not yet allocated.
        num_freeable_slots: slots free now or after all evictions.
    """
    return and_(rows <= encoder_budget, rows + chosen_rows <= num_freeable_slots)
