"""The slot arithmetic of both books, and what the monitors of *free* and of the book share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spec.claims.predicates import slots_conserved
from spec.functions.cases import BookCase, FreeCase
from spec.functions.findings import Finding, finding
from spec.functions.observations import BookState
from spec.record.steps import ErrorSeen


def require_complete(
    seen: Sequence[object], wanted: Sequence[object], error: ErrorSeen | None
) -> None:
    """Refuse an observation that stops early without an error, or goes on after the end."""
    if len(seen) > len(wanted) or (error is None and len(seen) < len(wanted)):
        raise ValueError(
            f"the observation has {len(seen)} answers for {len(wanted)} calls and no error that "
            "explains it"
        )


def wrong_entry_slots(
    cache_size: int, rows: Mapping[str, int], book: BookState
) -> tuple[str, str] | None:
    """What a book of entries reports, and what its entries add up to, where the two differ.

    Args:
        cache_size: capacity (rows).
        rows: the rows of each entry.
        book: what the target reports.
    """
    occupied = sum(rows.get(name, 0) for name, _ in book.references)
    referenced = sum(rows.get(name, 0) for name, holders in book.references if holders)
    return wrong_slots(cache_size, occupied, referenced, book)


def wrong_slots(
    cache_size: int, occupied: int, referenced: int, book: BookState
) -> tuple[str, str] | None:
    """What a book reports, and what it should, where the two differ.

    Args:
        cache_size: capacity (rows).
        occupied: rows of everything in the book.
        referenced: those of them that are referenced.
        book: what the target reports; an encoder-decoder book counts no freeable slots.
    """
    free, freeable = cache_size - occupied, cache_size - referenced
    reported = freeable if book.num_freeable_slots is None else book.num_freeable_slots
    if slots_conserved(book.num_free_slots, reported, occupied, referenced, cache_size):
        return None
    if book.num_freeable_slots is None:
        return (
            f"free {book.num_free_slots} of {cache_size}",
            f"free {free} of {cache_size}: {occupied} rows are occupied",
        )
    return (
        f"free {book.num_free_slots}, freeable {book.num_freeable_slots} of {cache_size}",
        (
            f"free {free}, freeable {freeable} of {cache_size}: {occupied} rows are occupied and "
            f"{referenced} of them referenced"
        ),
    )


def slots_finding(
    case: FreeCase | BookCase,
    where: str,
    wrong: tuple[str, str],
    is_encoder_decoder: bool,
    target: str,
) -> Finding:
    """The finding about ``wrong``, the slots that are reported and those that should be."""
    kind = "encoder-decoder book" if is_encoder_decoder else "book"
    return finding(
        "slots-conserved",
        case,
        observed=f"{where}: {wrong[0]}",
        expected=wrong[1],
        target=target,
        mechanism=f"{kind} credits slots it does not have",
    )
