"""A run as lines of text in fixed columns: one line for each step, with a legend.

The columns hold signs, never names, so that no name can break them; the legend spells the names
out. Positions lie across, one column each; where there are too many, one column for a stretch in
which nothing begins or ends.
"""

from __future__ import annotations

from proofs.describe.visible import visible
from proofs.describe.words import counted
from proofs.report.picture.text_cells import (
    NO_COLUMNS,
    Columns,
    book_cell,
    columns_of,
    mark_cells,
    prompt_cell,
    request_cells,
    worker_cell,
)
from proofs.report.story.timeline import Gap, RequestTrack, StepRow, Timeline

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
    told = _cut("; ".join(said))
    if row.mark is None:
        return told
    return f"{told}{'  ' if told else ''}<== {_note(row.mark.text)}"


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
