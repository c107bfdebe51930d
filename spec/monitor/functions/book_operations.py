"""Check the claims about the book on an observation."""

from __future__ import annotations

from spec.claims import predicates as claims
from spec.functions.book import SpecBook, SpecEncoderDecoderBook
from spec.functions.cases import BookCase
from spec.functions.findings import Finding, finding
from spec.functions.observations import BookObservation, BookStep, request_name
from spec.monitor.functions.slots import (
    require_complete,
    slots_finding,
    wrong_entry_slots,
    wrong_slots,
)


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
    require_complete(observation.steps, case.operations, observation.error)
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
                wanted_answer = book.take(
                    occurrence, feature, operation.encoder_budget, operation.num_rows_chosen
                )
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
    live = [n for n in step.notices if not claims.evicted_not_live(True, n in references)]
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
        holding = set(references.get(name, ()))
        lost = sorted(
            holder
            for holder in holders
            if not claims.held_until_last_use(
                taken=True, is_needed=True, referenced=holder in holding
            )
        )
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
        kept = sorted(
            holder for holder in holding if not claims.released(holder not in holders, held=True)
        )
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
    wrong = wrong_entry_slots(case.cache_size, rows, step.book)
    return [] if wrong is None else [slots_finding(case, where, wrong, False, target)]


def _check_encoder_decoder_book(
    case: BookCase, observation: BookObservation, target: str
) -> tuple[Finding, ...]:
    require_complete(observation.steps, case.operations, observation.error)
    book = SpecEncoderDecoderBook(case.cache_size)
    for index, (operation, step) in enumerate(
        zip(case.operations, observation.steps, strict=False)
    ):
        where = f"operation {index} ({operation.action})"
        occurrence = (operation.request, operation.feature)
        match operation.action:
            case "take":
                feature = case.requests[operation.request][operation.feature]
                wanted = book.take(
                    occurrence, feature, operation.encoder_budget, operation.num_rows_chosen
                )
                if step.answer != wanted:
                    return (
                        finding(
                            "book-exact",
                            case,
                            observed=f"{where}: {step.answer}",
                            expected=wanted,
                            target=target,
                            mechanism="encoder-decoder book differs at take",
                        ),
                    )
            case "drop":
                book.drop(occurrence)
            case "finish":
                book.finish(operation.request)
            case "reset":
                book.reset()
        occupied = case.cache_size - book.num_free_slots
        wrong = wrong_slots(case.cache_size, occupied, occupied, step.book)
        if wrong is not None:
            return (slots_finding(case, where, wrong, True, target),)
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
