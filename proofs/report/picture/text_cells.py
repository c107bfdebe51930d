"""The cells of a run's picture in text: one sign for a position, an entry or a tensor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from proofs.report.story.timeline import Bar, EntryState, Lane, RequestTrack, StepRow, Timeline

_MOST_POSITIONS = 48
"""With more positions than this, a column stands for a stretch of them."""

_MOST_COLUMNS = 28
"""Stretches that are drawn; of longer runs each line gives the range in numbers."""


@dataclass(frozen=True)
class Columns:
    """Where the columns of a request's picture begin, and how they are put together.

    Attributes:
        starts: first position of each column; empty where there are too many to draw.
        width: characters of a column.
        gap: what stands between two.
    """

    starts: tuple[int, ...]
    width: int
    gap: str

    @property
    def total(self) -> int:
        """Characters of the whole."""
        return len(self.starts) * self.width + len(self.gap) * max(0, len(self.starts) - 1)

    @property
    def width_of_all(self) -> int:
        """Characters of the column in the table."""
        return max(self.total, len("request 00")) if self.starts else len("[00000,00000)")

    def join(self, cells: Iterable[str]) -> str:
        """Cells side by side."""
        return self.gap.join(cell.rjust(self.width) for cell in cells)


NO_COLUMNS = Columns((), 0, "")
"""Ranges in numbers."""


def columns_of(timeline: Timeline, track: RequestTrack) -> Columns:
    """Columns for all that the shown steps do with a request."""
    lanes = [
        lane
        for row in timeline.rows
        if isinstance(row, StepRow)
        for lane in row.lanes
        if lane.request == track.request
    ]
    last = max(
        [
            track.num_prompt_tokens,
            *(bar.span[1] for bar in track.bars),
            *(lane.processed[1] for lane in lanes),
            *(lane.drafter[1] for lane in lanes if lane.drafter is not None),
        ]
    )
    if last <= _MOST_POSITIONS:
        return Columns(tuple(range(last)), 1, "")
    edges = {0, last}
    for bar in track.bars:
        edges |= {*bar.span, *(edge for span in bar.rows for edge in span)}
    if len(edges) > _MOST_COLUMNS:
        edges = {0, last} | {edge for bar in track.bars for edge in bar.span}
    for lane in lanes:
        edges |= {*lane.processed, *(lane.drafter or ())}
    starts = tuple(sorted(edge for edge in edges if edge < last))
    if len(starts) > _MOST_COLUMNS:
        return NO_COLUMNS
    return Columns(starts, max(len(str(start)) for start in starts), " ")


def prompt_cell(track: RequestTrack, position: int, signs: dict[int, str]) -> str:
    """What the prompt has at a position: a row of an item, no row of it, or text."""
    bar = _bar_at(track, position)
    if bar is None:
        return "."
    sign = signs[bar.entry]
    return sign if _takes_row(bar, position) else sign.lower()


def _bar_at(track: RequestTrack, position: int) -> Bar | None:
    return next((b for b in track.bars if b.span[0] <= position < b.span[1]), None)


def _takes_row(bar: Bar, position: int) -> bool:
    return any(start <= position < end for start, end in bar.rows)


def request_cells(
    track: RequestTrack, columns: Columns, lane: Lane | None, progress: int | None
) -> str:
    """What a step does with a request; nothing of one that has not arrived or has ended."""
    if not columns.starts:
        if lane is not None:
            return f"[{lane.processed[0]},{lane.processed[1]})"
        return "" if progress is None else f"at {progress}"
    if lane is None and progress is None:
        return ""
    starts = columns.starts
    return columns.join(_cell(track, lane, progress, start) for start in starts)


def mark_cells(row: StepRow, track: RequestTrack, columns: Columns) -> str:
    """Signs below a step's cells where its contradiction lies; nothing where that is elsewhere."""
    mark, starts = row.mark, columns.starts
    if mark is None or mark.request != track.request or mark.span is None or not starts:
        return ""
    start, end = mark.span[0], max(mark.span[1], mark.span[0] + 1)
    ends = (*starts[1:], max(end, starts[-1] + 1))
    return columns.join(
        "!" if first < end and last > start else " "
        for first, last in zip(starts, ends, strict=True)
    )


def _cell(track: RequestTrack, lane: Lane | None, progress: int | None, position: int) -> str:
    if lane is None:
        return "-" if progress is not None and position < progress else "."
    bar = _bar_at(track, position)
    if bar is not None:
        missing = {read.feature for read in lane.reads if read.state == "missing"}
        if bar.feature in missing and _is_read(lane, position) and _takes_row(bar, position):
            return "X"
        if bar.feature in lane.refused and position >= lane.processed[0]:
            return "?"
    start, end = lane.processed
    if start <= position < end:
        return "="
    if lane.drafter is not None and lane.drafter[0] <= position < lane.drafter[1]:
        return ">"
    return "-" if position < start else "."


def _is_read(lane: Lane, position: int) -> bool:
    windows = [lane.processed, *([lane.drafter] if lane.drafter is not None else [])]
    return any(start <= position < end for start, end in windows)


def book_cell(state: EntryState | None, sign: str) -> str:
    """What the book has of an entry."""
    if state is None:
        return "."
    return {"referenced": sign, "freeable": sign.lower(), "evicted": "x", "worker only": "."}[
        state.state
    ]


def worker_cell(state: EntryState | None, sign: str) -> str:
    """What the worker has of an entry."""
    if state is None:
        return "."
    if state.encoded:
        return "+"
    return sign if state.resident else "."
