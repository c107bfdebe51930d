"""A run as lines of text in fixed columns: one line for each step, with a legend.

The columns hold signs, never names, so that no name can break them; the legend spells the names
out. Positions lie across, one column each; where there are too many, one column for a stretch in
which nothing begins or ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from proofs.describe.visible import visible
from proofs.describe.words import counted
from proofs.report.story.timeline import Bar, EntryState, Gap, Lane, RequestTrack, StepRow, Timeline

_MOST_NOTE = 96
_MOST_WIDTH = 120
"""Characters of the pictures of requests; further ones give their ranges in numbers."""

_MOST_LEGEND = 40
_SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NO_SIGN = "*"
_STEP = len("update 0000")

LEGEND = (
    "prompt   a letter takes a row of that item, in lower case none; . is text",
    "request  - computed before, = read by the target in this pass, > read ahead by the drafter,",
    "         ? asked for and refused, X read and not there; below it ! where the contradiction is",
    "book     A referenced, a not referenced (may be evicted), x evicted in this step",
    "worker   A held, + encoded in this step, . not held",
    "free     rows of the cache that the book counts as free",
)
"""What the signs mean."""


def text_timeline(timeline: Timeline) -> list[str]:
    """The lines of the picture, legend included."""
    used = _entries_used(timeline)
    signs = _signs(timeline, used)
    tracks = _tracks(timeline)
    lines = _head(timeline, tracks, used, signs)
    for index, row in enumerate(timeline.rows):
        margin = _margin(timeline, index)
        if isinstance(row, Gap):
            lines.append(f"{margin} ... {counted(row.num_steps, 'step')} left out")
            continue
        lines.append(f"{margin} {_line(row, tracks, timeline, used, signs)}".rstrip())
        marks = [mark_cells(row, track, c).ljust(c.width_of_all) for track, c in tracks]
        if any("!" in cells for cells in marks):
            lines.append(f"{margin} {'  '.join((' ' * _STEP, *marks))}".rstrip())
    if timeline.lasso is not None:
        lines.append(f"  the marked steps come again and again: {_note(timeline.lasso.text)}")
    after = timeline.num_left_out - sum(
        row.num_steps for row in timeline.rows if isinstance(row, Gap)
    )
    if after > 0:
        lines.append(f"  ... {counted(after, 'step')} after these left out")
    return [*lines, "", *_legend(timeline, used, signs)]


def _signs(timeline: Timeline, used: list[int]) -> dict[int, str]:
    """One character for each entry: its own short name where all of these are letters."""
    letters = [entry.letter for entry in timeline.entries]
    if all(len(letter) == 1 and letter in _SIGNS for letter in letters):
        return dict(enumerate(letters))
    own = dict(zip(used, _SIGNS, strict=False))
    return {index: own.get(index, _NO_SIGN) for index in range(len(timeline.entries))}


def _tracks(timeline: Timeline) -> list[tuple[RequestTrack, Columns]]:
    """The requests with their columns; where all are too broad, the one concerned keeps its own."""
    marked = {
        row.mark.request
        for row in timeline.rows
        if isinstance(row, StepRow) and row.mark is not None
    }
    found = {}
    taken = 0
    for track in sorted(timeline.tracks, key=lambda track: track.request not in marked):
        columns = columns_of(timeline, track)
        taken += columns.total
        found[track.request] = columns if taken <= _MOST_WIDTH else NO_COLUMNS
    return [(track, found[track.request]) for track in timeline.tracks]


def _entries_used(timeline: Timeline) -> list[int]:
    """Entries that a shown step or bar has to do with, those without a sign of their own last."""
    shown = {bar.entry for track in timeline.tracks for bar in track.bars}
    for row in timeline.rows:
        if isinstance(row, StepRow):
            shown |= {state.entry for state in row.cache.entries}
    return sorted(shown)[: len(_SIGNS)]


def _head(
    timeline: Timeline,
    tracks: list[tuple[RequestTrack, Columns]],
    used: list[int],
    signs: dict[int, str],
) -> list[str]:
    names = ["".ljust(_STEP)]
    rulers: list[list[str]] = [["".ljust(_STEP)], ["step".ljust(_STEP)]]
    prompts = [_prompt_label(timeline).ljust(_STEP)]
    for track, columns in tracks:
        width = columns.width_of_all
        names.append(f"request {track.request}".ljust(width))
        if columns.width == 1 and not columns.gap:
            tens = (str(p // 10) if p % 10 == 0 and p else " " for p in columns.starts)
            rulers[0].append(columns.join(tens).ljust(width))
            rulers[1].append(columns.join(str(p % 10) for p in columns.starts).ljust(width))
        else:
            rulers[0].append("".ljust(width))
            heads = columns.join(map(str, columns.starts)) or "tokens"
            rulers[1].append(heads.ljust(width))
        cells = columns.join(prompt_cell(track, start, signs) for start in columns.starts)
        prompts.append(cells.ljust(width))
    entries = "".join(signs[entry] for entry in used)
    names += ["book".ljust(_cache_width(used)), "free", "worker"]
    rulers[1] += [
        entries.ljust(_cache_width(used)),
        f"/{_size_of(timeline)}".rjust(4),
        entries,
    ]
    lines = ["  ".join(cells).rstrip() for cells in (names, *rulers, prompts)]
    return [f"  {line}" for line in lines if line.strip()]


def _prompt_label(timeline: Timeline) -> str:
    return "encoder" if timeline.is_encoder_decoder else "prompt"


def _size_of(timeline: Timeline) -> int:
    return next(row.cache.size for row in timeline.rows if isinstance(row, StepRow))


def _cache_width(used: list[int]) -> int:
    return max(len("book"), len(used))


def _line(
    row: StepRow,
    tracks: list[tuple[RequestTrack, Columns]],
    timeline: Timeline,
    used: list[int],
    signs: dict[int, str],
) -> str:
    word = {"pass": "pass", "update": "update", "event": "before"}[row.kind]
    cells = [f"{word} {row.pass_index}".ljust(_STEP)]
    lanes = {lane.request: lane for lane in row.lanes}
    progress = {request: computed for request, _, computed, _ in row.standing}
    for track, columns in tracks:
        lane = lanes.get(track.request)
        cells.append(
            request_cells(track, columns, lane, progress.get(track.request)).ljust(
                columns.width_of_all
            )
        )
    states = {state.entry: state for state in row.cache.entries}
    cells.append("".join(book_cell(states.get(e), signs[e]) for e in used))
    cells[-1] = cells[-1].ljust(_cache_width(used))
    cells.append(str(row.cache.num_free).rjust(4))
    cells.append("".join(worker_cell(states.get(e), signs[e]) for e in used).ljust(6))
    cells.append(_notes(row))
    return "  ".join(cells)


def _notes(row: StepRow) -> str:
    if row.repeats is not None:
        said = [f"just as pass {row.repeats}"]
    elif row.kind == "event":
        said = [_note(row.title)]
    else:
        said = [_note(r.short) for r in row.reasons if r.short and not r.is_detail]
    note = _cut("; ".join(said))
    if row.mark is None:
        return note
    return f"{note}{'  ' if note else ''}<== {_note(row.mark.text)}"


def _note(text: str) -> str:
    return visible(text, 2 * _MOST_NOTE)


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_NOTE else f"{text[: _MOST_NOTE - 3]}..."


def _margin(timeline: Timeline, index: int) -> str:
    """A bar beside the steps of a circle."""
    lasso = timeline.lasso
    if lasso is None or not lasso.first <= index <= lasso.last:
        return " "
    return "|"


def _legend(timeline: Timeline, used: list[int], signs: dict[int, str]) -> list[str]:
    rows = {bar.entry: bar.num_rows for track in timeline.tracks for bar in track.bars}
    lines = list(LEGEND)
    lines[0] = lines[0].replace("prompt ", f"{_prompt_label(timeline):7}", 1)
    for entry in used[:_MOST_LEGEND]:
        name = visible(timeline.entries[entry].identifier)
        count = f", {counted(rows[entry], 'row')}" if entry in rows else ""
        lines.append(f"{signs[entry]:8} {name}{count}")
    hidden = len(timeline.entries) - len(used)
    if hidden > 0:
        lines.append(f"not shown: {counted(hidden, 'item')} that these steps do not touch")
    if timeline.num_hidden_requests:
        lines.append(f"not shown: {counted(timeline.num_hidden_requests, 'request')}")
    return lines


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
            *(bar.span.end for bar in track.bars),
            *(lane.processed.end for lane in lanes),
            *(lane.drafter.end for lane in lanes if lane.drafter is not None),
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
    return next((b for b in track.bars if b.span.start <= position < b.span.end), None)


def _takes_row(bar: Bar, position: int) -> bool:
    return any(start <= position < end for start, end in bar.rows)


def request_cells(
    track: RequestTrack, columns: Columns, lane: Lane | None, progress: int | None
) -> str:
    """What a step does with a request; nothing of one that has not arrived or has ended."""
    if not columns.starts:
        if lane is not None:
            return f"[{lane.processed.start},{lane.processed.end})"
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
    start, end = mark.span.start, max(mark.span.end, mark.span.start + 1)
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
        if bar.feature in lane.refused and position >= lane.processed.start:
            return "?"
    start, end = lane.processed
    if start <= position < end:
        return "="
    if lane.drafter is not None and lane.drafter.start <= position < lane.drafter.end:
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
