"""Check the claims about the book, and about *free*, on an observation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spec.book import SpecBook
from spec.cases import BookCase, FreeCase, Progress
from spec.feature import rows_by_identifier
from spec.findings import Finding, finding
from spec.observations import (
    BookObservation,
    BookState,
    BookStep,
    ErrorSeen,
    FreeMoment,
    FreeObservation,
)
from spec.rules import cannot_be_read_from, may_drop_encoder_decoder_reference


def check_free(case: FreeCase, observation: FreeObservation, target: str) -> tuple[Finding, ...]:
    """Compare what *free* let go, moment by moment, with what may still be read.

    Stops at the first moment that contradicts a claim: what follows grows out of it.

    Raises:
        ValueError: moments are missing although there was no error.
    """
    _require_complete(observation.moments, case.progress, observation.error)
    rows = rows_by_identifier(case.features)
    dropped: set[int] = set()
    for index, (progress, moment) in enumerate(
        zip(case.progress, observation.moments, strict=False)
    ):
        found = _check_drops(case, progress, moment, index, target)
        dropped.update(moment.dropped)
        if not found and not case.is_encoder_decoder:
            found = _check_still_held(case, progress, moment, dropped, index, target)
        if not found:
            found = _check_free_slots(case, rows, moment, dropped, index, target)
        if found:
            return tuple(found)
    if observation.error is not None:
        return (
            finding(
                "no-error",
                case,
                observed=f"{observation.error.type}: {observation.error.message}",
                expected="free raises nothing",
                target=target,
                mechanism=f"free raises {observation.error.type}",
            ),
        )
    return ()


def _check_drops(
    case: FreeCase, progress: Progress, moment: FreeMoment, index: int, target: str
) -> list[Finding]:
    floor = progress.num_computed_tokens - progress.num_drafts_in_flight
    for feature_index in moment.dropped:
        feature = case.features[feature_index]
        if case.is_encoder_decoder:
            safe = may_drop_encoder_decoder_reference(progress.num_computed_tokens)
            wanted = "kept until the first step has run"
        else:
            safe = cannot_be_read_from(feature.offset, feature.length, floor)
            wanted = (
                f"kept while its end {feature.end} is past {progress.num_computed_tokens} computed "
                f"- {progress.num_drafts_in_flight} drafts in flight = {floor}"
            )
        if not safe:
            return [
                finding(
                    "freed-not-needed",
                    case,
                    observed=f"moment {index}: the reference to {feature.describe()} is dropped",
                    expected=wanted,
                    target=target,
                    mechanism="reference dropped while it can still be read",
                )
            ]
    return []


def _check_still_held(
    case: FreeCase,
    progress: Progress,
    moment: FreeMoment,
    dropped: set[int],
    index: int,
    target: str,
) -> list[Finding]:
    floor = progress.num_computed_tokens - progress.num_drafts_in_flight
    references = dict(moment.book.references)
    for feature_index, feature in enumerate(case.features):
        needed = feature_index not in dropped and feature.has_row_at_or_past(floor)
        if needed and not references.get(feature.identifier):
            return [
                finding(
                    "held-until-last-use",
                    case,
                    observed=f"moment {index}: {feature.identifier} is unreferenced",
                    expected=f"referenced: {feature.describe()} was taken and has a row at or past "
                    f"{floor}",
                    target=target,
                    mechanism="entry unreferenced before its last taken occurrence",
                )
            ]
    return []


def _check_free_slots(
    case: FreeCase,
    rows: dict[str, int],
    moment: FreeMoment,
    dropped: set[int],
    index: int,
    target: str,
) -> list[Finding]:
    if case.is_encoder_decoder:
        held = sum(f.num_rows for i, f in enumerate(case.features) if i not in dropped)
        wrong = _wrong_slots(case.cache_size, held, held, moment.book)
    else:
        wrong = _wrong_entry_slots(case.cache_size, rows, moment.book)
    if wrong is None:
        return []
    return [_slots_finding(case, f"moment {index}", wrong, case.is_encoder_decoder, target)]


def check_book(case: BookCase, observation: BookObservation, target: str) -> tuple[Finding, ...]:
    """Replay the operations on the oracle's book and compare after each.

    Stops at the first operation that contradicts a claim. ``book-exact`` counts only where no
    narrower claim does.

    Raises:
        ValueError: steps are missing although there was no error.
    """
    if case.is_encoder_decoder:
        return _check_encoder_decoder_book(case, observation, target)
    book = SpecBook(case.cache_size)
    _require_complete(observation.steps, case.operations, observation.error)
    rows: dict[str, int] = {}
    present: set[str] = set()
    for index, (operation, step) in enumerate(
        zip(case.operations, observation.steps, strict=False)
    ):
        where = f"operation {index} ({operation.action})"
        wanted_answer, wanted_notices = "done", set[str]()
        occurrence = (operation.request, operation.feature)
        match operation.action:
            case "take":
                feature = case.requests[operation.request][operation.feature]
                wanted_answer = book.take(occurrence, feature)
                if wanted_answer == "rejected" and step.answer == "hit":
                    # Only without hash-is-content: no claim forbids to accept, slots must be right.
                    wanted_answer = "hit"
                    book.entries[feature.identifier].occurrences.add(occurrence)
                if feature.identifier not in present:
                    rows[feature.identifier] = feature.num_rows
            case "drop":
                book.drop(occurrence)
            case "finish":
                for held in book.occurrences_of(operation.request):
                    book.drop(held)
            case "end_pass":
                wanted_notices = book.end_pass()
            case "reset":
                book.reset()
        found = _check_step(case, book, rows, step, where, target)
        if not found and (
            step.answer != wanted_answer
            or set(step.notices) != wanted_notices
            or {name for name, _ in step.book.references} != set(book.entries)
        ):
            found = [
                finding(
                    "book-exact",
                    case,
                    observed=f"{where}: {step.answer}, notices {sorted(step.notices)}, entries "
                    f"{sorted(name for name, _ in step.book.references)}",
                    expected=f"{wanted_answer}, notices {sorted(wanted_notices)}, entries "
                    f"{sorted(book.entries)}",
                    target=target,
                    mechanism=f"book differs at {operation.action}",
                )
            ]
        if found:
            return tuple(found)
        present = {name for name, _ in step.book.references}
    return _book_error(case, observation, target)


def _check_step(
    case: BookCase,
    book: SpecBook,
    rows: dict[str, int],
    step: BookStep,
    where: str,
    target: str,
) -> list[Finding]:
    references = dict(step.book.references)
    live = [name for name in step.notices if name in references]
    if live:
        return [
            finding(
                "evicted-not-live",
                case,
                observed=f"{where}: the worker is told to drop {live[0]}, which is in the book",
                expected="no notice for an entry that is in the book at the end of its pass",
                target=target,
                mechanism="eviction notice outlives a new allocation",
            )
        ]
    for name, entry in book.entries.items():
        holders = {request_name(request) for request, _ in entry.occurrences}
        lost = sorted(holders - set(references.get(name, ())))
        if name in references and lost:
            return [
                finding(
                    "held-until-last-use",
                    case,
                    observed=f"{where}: {lost[0]} holds no reference to {name}",
                    expected=f"{lost[0]} took an occurrence of {name} that it has not let go",
                    target=target,
                    mechanism="entry unreferenced before its last taken occurrence",
                )
            ]
        kept = sorted(set(references.get(name, ())) - holders)
        if kept:
            return [
                finding(
                    "released",
                    case,
                    observed=f"{where}: {kept[0]} still holds a reference to {name}",
                    expected=f"{kept[0]} let go every occurrence of {name} that it took",
                    target=target,
                    mechanism="reference outlives its last taken occurrence",
                )
            ]
    wrong = _wrong_entry_slots(case.cache_size, rows, step.book)
    return [] if wrong is None else [_slots_finding(case, where, wrong, False, target)]


def _check_encoder_decoder_book(
    case: BookCase, observation: BookObservation, target: str
) -> tuple[Finding, ...]:
    _require_complete(observation.steps, case.operations, observation.error)
    held: dict[tuple[int, int], int] = {}
    for index, (operation, step) in enumerate(
        zip(case.operations, observation.steps, strict=False)
    ):
        where = f"operation {index} ({operation.action})"
        occurrence = (operation.request, operation.feature)
        if operation.action == "take":
            rows = case.requests[operation.request][operation.feature].num_rows
            fits = rows <= case.cache_size - sum(held.values())
            if (step.answer == "allocated") != fits:
                return (
                    finding(
                        "book-exact",
                        case,
                        observed=f"{where}: {step.answer}",
                        expected="allocated" if fits else "refused",
                        target=target,
                        mechanism="encoder-decoder book differs at take",
                    ),
                )
            if fits:
                held[occurrence] = held.get(occurrence, 0) + rows
        elif operation.action == "drop":
            held.pop(occurrence, None)
        elif operation.action == "finish":
            held = {o: rows for o, rows in held.items() if o[0] != operation.request}
        elif operation.action == "reset":
            held.clear()
        total = sum(held.values())
        wrong = _wrong_slots(case.cache_size, total, total, step.book)
        if wrong is not None:
            return (_slots_finding(case, where, wrong, True, target),)
    return _book_error(case, observation, target)


def _book_error(case: BookCase, observation: BookObservation, target: str) -> tuple[Finding, ...]:
    error = observation.error
    if error is None:
        return ()
    return (
        finding(
            "no-error",
            case,
            observed=f"operation {len(observation.steps)}: {error.type}: {error.message}",
            expected="the book raises nothing",
            target=target,
            mechanism=f"book raises {error.type}",
        ),
    )


def _require_complete(
    seen: Sequence[object], wanted: Sequence[object], error: ErrorSeen | None
) -> None:
    """Refuse an observation that stops early without an error, or goes on after the end."""
    if len(seen) > len(wanted) or (error is None and len(seen) < len(wanted)):
        raise ValueError(
            f"the observation has {len(seen)} answers for {len(wanted)} calls and no error that "
            "explains it"
        )


def request_name(index: int) -> str:
    """Name under which targets know the request with the given index in a case."""
    return f"request-{index}"


def _wrong_entry_slots(
    cache_size: int, rows: Mapping[str, int], book: BookState
) -> tuple[str, str] | None:
    occupied = sum(rows.get(name, 0) for name, _ in book.references)
    referenced = sum(rows.get(name, 0) for name, holders in book.references if holders)
    return _wrong_slots(cache_size, occupied, referenced, book)


def _wrong_slots(
    cache_size: int, occupied: int, referenced: int, book: BookState
) -> tuple[str, str] | None:
    free, freeable = cache_size - occupied, cache_size - referenced
    if book.num_freeable_slots is None:
        if free >= 0 and book.num_free_slots == free:
            return None
        return (
            f"free {book.num_free_slots} of {cache_size}",
            f"free {free} of {cache_size}: {occupied} rows are occupied",
        )
    if free >= 0 and (book.num_free_slots, book.num_freeable_slots) == (free, freeable):
        return None
    return (
        f"free {book.num_free_slots}, freeable {book.num_freeable_slots} of {cache_size}",
        (
            f"free {free}, freeable {freeable} of {cache_size}: {occupied} rows are occupied and "
            f"{referenced} of them referenced"
        ),
    )


def _slots_finding(
    case: FreeCase | BookCase,
    where: str,
    wrong: tuple[str, str],
    is_encoder_decoder: bool,
    target: str,
) -> Finding:
    kind = "encoder-decoder book" if is_encoder_decoder else "book"
    return finding(
        "slots-conserved",
        case,
        observed=f"{where}: {wrong[0]}",
        expected=wrong[1],
        target=target,
        mechanism=f"{kind} credits slots it does not have",
    )
