"""Guards that are wrong for one remote integer: CrossHair must find each.

If it does not, it did not explore, and its silence about the real guards means nothing. The
contracts and the names are those of :mod:`proofs.crosshair.contracts`.
"""

from __future__ import annotations

from impl.reference.scheduling import guards
from spec.rules import geometry  # noqa: F401 -- named in the contracts
from spec.rules.free import (  # noqa: F401 -- named in the contracts
    may_drop_reference,
)
from spec.rules.tolerance import (  # noqa: F401 -- named in the contracts
    miss_tolerated_v1,
    miss_tolerated_v2,
)

REMOTE = 7_654_321
"""An integer that no one would try by chance."""


def free(offset: int, length: int, margin: int, computed: int, placeholders: int) -> bool:
    """Wrong for one number of placeholders.

    post: _ == may_drop_reference(offset, length, computed, placeholders, margin)
    """
    return reference_may_go(offset + length, margin, computed, placeholders)


def tolerance_v1(offset: int, computed: int, scheduled: int) -> bool:
    """Wrong for one offset.

    post: _ == miss_tolerated_v1(offset, computed, scheduled)
    """
    return tolerates_miss_v1(offset, computed, scheduled)


def tolerance_v2(offset: int, look_ahead: int, query_end: int) -> bool:
    """Wrong for one offset.

    post: _ == miss_tolerated_v2(offset, look_ahead, query_end)
    """
    return tolerates_miss_v2(offset, look_ahead, query_end)


def overlap(offset: int, length: int, start: int, end: int) -> bool:
    """Wrong for one length.

    pre: length >= 1
    pre: start < end
    post: _ == geometry.meets(offset, length, start, end)
    """
    return overlaps(offset, length, start, end)


def reference_may_go(
    end: int, margin: int, num_computed_tokens: int, num_output_placeholders: int
) -> bool:
    """The guard of free, wrong for one number of placeholders."""
    if num_output_placeholders == REMOTE:
        return end + margin <= num_computed_tokens
    return guards.reference_may_go(end, margin, num_computed_tokens, num_output_placeholders)


def tolerates_miss_v1(offset: int, num_computed_tokens: int, num_scheduled_tokens: int) -> bool:
    """V1's guard, wrong for one offset."""
    if offset == REMOTE:
        return offset > num_computed_tokens + num_scheduled_tokens
    return guards.tolerates_miss_v1(offset, num_computed_tokens, num_scheduled_tokens)


def tolerates_miss_v2(offset: int, draft_lookahead: int, query_end: int) -> bool:
    """V2's guard, wrong for one offset."""
    if offset == REMOTE:
        return offset >= query_end
    return guards.tolerates_miss_v2(offset, draft_lookahead, query_end)


def overlaps(offset: int, length: int, start: int, end: int) -> bool:
    """The overlap test, wrong for one length."""
    if length == REMOTE:
        return offset < end
    return guards.overlaps(offset, length, start, end)
