"""Cases as fixed-column text: where windows and features lie, position by position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from proofs.describe.cases import describe_limits
from proofs.describe.words import counted
from proofs.report.text.literals import printable
from spec.functions.book import SpecBook, SpecEncoderDecoderBook
from spec.functions.cases import (
    BookCase,
    BookOperation,
    Case,
    FreeCase,
    GatherCase,
    RowRangeCase,
    WindowCase,
)
from spec.functions.gather import Gathered, InteriorMiss, expected_gather, window_of
from spec.functions.observations import request_name
from spec.functions.scheduling_cases import SchedulingCase
from spec.record.feature import Feature
from spec.rules.geometry import is_at_boundary, target_window

_MOST_COLUMNS = 40
"""With more positions than this, a column stands for a run of positions that are all alike."""

_MUST = "what must happen"
"""Head of the column with the oracle's answers, which the target's are not."""

Cell = Callable[[int], str]
"""What to show at a token position."""


@dataclass(frozen=True)
class _Row:
    label: str
    cell: Cell


def picture(case: Case) -> str:
    """The case as lines of text.

    ``#`` is a position that takes a row, ``-`` one inside a feature that does not, ``=`` one inside
    a window, ``.`` one that is none of these.
    """
    match case:
        case GatherCase():
            return _gather(case)
        case FreeCase():
            return _free(case)
        case BookCase():
            return _book(case)
        case WindowCase():
            rows = [_window_row(f"window [{case.start},{case.end})", case.start, case.end)]
            edges = [case.start, case.end]
            return _table([*rows, *_feature_rows(case.features)], case.features, edges)
        case RowRangeCase():
            feature = Feature(0, len(case.is_embed), "item", case.is_embed)
            rows = [_window_row(f"range [{case.start},{case.end})", case.start, case.end)]
            rows.append(_Row("item", _feature_cell(feature)))
            rows.append(_Row("row", lambda p: str(feature.row_at(p)) if case.is_embed[p] else "."))
            return _table(rows, (feature,), [case.start, case.end])


def picture_of_pass(case: SchedulingCase) -> str:
    """A case about scheduling as lines of text, with the signs of :func:`picture`."""
    start = case.num_computed_tokens
    end = min(start + case.token_budget, case.prefill_len)
    rows = [_window_row(f"computed [0,{start})", 0, start)] if start else []
    rows.append(_window_row(f"tokens to be had [{start},{end})", start, end))
    if case.scheduler_shift:
        ahead = end + case.scheduler_shift
        rows.append(_window_row(f"looked ahead to {ahead}", end, ahead))
    rows += _feature_rows(case.features)
    table = _table(rows, case.features, [0, start, end, case.prefill_len])
    book = ", ".join(
        f"{printable(entry.identifier)} ({counted(entry.num_rows, 'row')}, held by {entry.holder})"
        for entry in case.entries
    )
    items = ", items are kept whole" if case.whole_items else ""
    return (
        f"prefill of {case.prefill_len}, cache of {counted(case.cache_size, 'row')}, encoder "
        f"budget {case.encoder_budget}{items}\nbook before it: {book or 'empty'}\n{table}"
    )


def _gather(case: GatherCase) -> str:
    resident = {output.identifier for output in case.resident}
    expected = expected_gather(case)
    parts: list[str] = []
    first = 0
    for index, request in enumerate(case.requests):
        computed, scheduled = request.num_computed_tokens, request.num_scheduled_tokens
        target = target_window(computed, scheduled)
        reader = window_of(request, case.draft_lookahead)
        rows = [_window_row(f"target reads [{target[0]},{target[1]})", *target)]
        if case.draft_lookahead:
            rows.append(_window_row(f"drafter reads [{reader[0]},{reader[1]})", *reader))
        for feature in request.features:
            there = "resident" if feature.identifier in resident else "not resident"
            boundary = ", boundary" if is_at_boundary(feature.offset, target[1]) else ""
            label = f"{printable(feature.describe().split(' mask ')[0])} {there}{boundary}"
            rows.append(_Row(label, _feature_cell(feature)))
        if isinstance(expected, Gathered):
            rows.append(_Row("must read row", _expected_cell(expected, first, reader)))
        edges = [*target, *reader]
        title = (
            f"request {index}: {computed} tokens computed, {scheduled} scheduled, prefill of "
            f"{request.prefill_len}"
        )
        parts.append(f"{title}\n{_table(rows, request.features, edges)}")
        first += scheduled
    if isinstance(expected, InteriorMiss):
        parts.append(
            f"must raise: {printable(expected.identifier)} is read at position "
            f"{expected.position} of request {expected.request}, inside the processed range"
        )
    return "\n\n".join(parts)


def _expected_cell(expected: Gathered, first: int, reader: tuple[int, int]) -> Cell:
    def cell(position: int) -> str:
        if not reader[0] <= position < reader[1]:
            return " "
        row = expected.positions[first + position - reader[0]]
        return "." if row is None else str(row.row)

    return cell


def _free(case: FreeCase) -> str:
    rows = list(_feature_rows(case.features))
    edges: list[int] = []
    for index, moment in enumerate(case.progress):
        computed = moment.num_computed_tokens
        floor = computed - moment.num_drafts_in_flight
        label = f"moment {index}: {computed} computed"
        if moment.num_output_placeholders:
            label += (
                f", {counted(moment.num_output_placeholders, 'placeholder')}, "
                f"{counted(moment.num_drafts_in_flight, 'draft')}"
            )
        rows.append(_Row(label, _progress_cell(floor, computed)))
        edges.extend([0, floor, computed])
    table = _table(rows, case.features, edges)
    kind = "encoder-decoder book" if case.is_encoder_decoder else "book"
    return (
        f"{kind} of {counted(case.cache_size, 'row')}, every feature taken, scheduler looks "
        f"{case.scheduler_shift} ahead\n= computed for good   ? may be taken back\n{table}"
    )


def _progress_cell(floor: int, computed: int) -> Cell:
    return lambda p: "=" if p < floor else "?" if p < computed else "."


def _book(case: BookCase) -> str:
    kind = "encoder-decoder book" if case.is_encoder_decoder else "book"
    book = (SpecEncoderDecoderBook if case.is_encoder_decoder else SpecBook)(case.cache_size)
    lines = [f"{kind} of {counted(case.cache_size, 'row')}", _book_line("  #  operation", _MUST)]
    for number, operation in enumerate(case.operations):
        line = f"{number:>3}  {operation.action:<9}"
        if operation.action in ("take", "drop"):
            feature = case.requests[operation.request][operation.feature]
            line += f"{request_name(operation.request)}  {printable(feature.describe())}"
            line += f", {counted(feature.num_rows, 'row')}{describe_limits(operation)}"
        elif operation.action == "finish":
            line += request_name(operation.request)
        lines.append(_book_line(line, _must_happen(book, case, operation)))
    return "\n".join(lines)


def _book_line(operation: str, must_happen: str) -> str:
    return f"{operation:<60}  {must_happen}"


def _must_happen(
    book: SpecBook | SpecEncoderDecoderBook, case: BookCase, operation: BookOperation
) -> str:
    """What the oracle's book answers to one operation, and the slots that it has afterwards."""
    answer = _answer(book, case, operation)
    free = f"free {book.num_free_slots}"
    if isinstance(book, SpecBook):
        free += f", freeable {book.num_freeable_slots}"
    return free if answer is None else f"{answer}; {free}"


def _answer(
    book: SpecBook | SpecEncoderDecoderBook, case: BookCase, operation: BookOperation
) -> str | None:
    """Carry out one operation; what the book answers, if it does."""
    occurrence = (operation.request, operation.feature)
    match operation.action:
        case "take":
            return book.take(
                occurrence,
                case.requests[operation.request][operation.feature],
                operation.encoder_budget,
                operation.num_rows_chosen,
            )
        case "drop":
            book.drop(occurrence)
        case "finish":
            if isinstance(book, SpecEncoderDecoderBook):
                book.finish(operation.request)
            else:
                for held in book.occurrences_of(operation.request):
                    book.drop(held)
        case "end_pass" if isinstance(book, SpecBook):
            notices = ", ".join(printable(name) for name in sorted(book.end_pass()))
            return f"evicted: {notices or 'none'}"
        case "reset":
            book.reset()
    return None


def _feature_rows(features: Sequence[Feature]) -> list[_Row]:
    return [
        _Row(printable(feature.describe().split(" mask ")[0]), _feature_cell(feature))
        for feature in features
    ]


def _feature_cell(feature: Feature) -> Cell:
    def cell(position: int) -> str:
        if not feature.offset <= position < feature.end:
            return "."
        return "#" if feature.takes_row_at(position) else "-"

    return cell


def _window_row(label: str, start: int, end: int) -> _Row:
    return _Row(label, lambda position: "=" if start <= position < end else ".")


def _table(rows: Sequence[_Row], features: Sequence[Feature], edges: Sequence[int]) -> str:
    """Rows over the positions from the lowest edge to the highest."""
    marks = {*edges, *(f.offset for f in features), *(f.end for f in features)}
    first, last = min(marks), max(marks)
    if last - first <= _MOST_COLUMNS:
        columns = list(range(first, last))
        heads = [str(position) for position in columns]
    else:
        marks.update(
            position
            for feature in features
            if feature.is_embed is not None
            for position, (left, right) in enumerate(
                pairwise(feature.is_embed), start=feature.offset + 1
            )
            if left != right
        )
        starts = sorted(marks)
        columns = starts[:-1]
        # The cells of a run are those of its first position.
        heads = [
            f"{start}-{end - 1}" if end - start > 1 else str(start)
            for start, end in pairwise(starts)
        ]
    table = [("position", heads)] + [(row.label, [row.cell(p) for p in columns]) for row in rows]
    label_width = max(len(label) for label, _ in table)
    widths = [max(len(cells[i]) for _, cells in table) for i in range(len(columns))]
    return "\n".join(
        (
            label.ljust(label_width)
            + "  "
            + " ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        ).rstrip()
        for label, cells in table
    )
