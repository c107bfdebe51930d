"""Draw the picture of a run: pure data in, SVG out.

Positions go across and steps down. Colours come from custom properties of the page, so that one
picture serves light, dark and print; letter and pattern say the same as the colour.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from proofs.report.picture.drawing_cache import cache_height, draw_cache
from proofs.report.picture.drawing_parts import (
    BAND,
    Area,
    colour_of,
    draw_grid,
    draw_lane,
    draw_notes,
    draw_track,
    lane_height,
    note_lines,
    notes_height,
    pattern_of,
    patterns,
    track_height,
)
from proofs.report.picture.scale import Scale
from proofs.report.picture.svg import Canvas, text_width
from proofs.report.story.timeline import Entry, Gap, Lane, StepRow, Timeline

_LEFT = 30.0
_LABEL = 132.0
_CACHE = 176.0
_NOTES = 258.0
_SPACE = 28.0
_TOKENS = 430.0
_BESIDE = 172.0
_FEWEST = 280.0
_PAD = 12.0
_LINE = 16.0


@dataclass(frozen=True)
class _Columns:
    """x of each column (px)."""

    label: float
    tokens: float
    cache: float
    notes: float
    right: float


@dataclass(frozen=True)
class _Placed:
    """A row with its place (px)."""

    index: int
    y: float
    height: float


def timeline_svg(timeline: Timeline, prefix: str = "t") -> str:
    """The whole picture.

    Args:
        timeline: what it shows.
        prefix: begins every id; letters and digits.
    """
    scale = Scale(0, timeline.num_positions, marks_of(timeline), _TOKENS)
    beside = _BESIDE if scale.width < _TOKENS else 24.0
    tokens = _LEFT + _LABEL
    cache = tokens + max(scale.width + beside, _FEWEST) + 10
    notes = cache + _CACHE + _SPACE
    columns = _Columns(_LEFT, tokens, cache, notes, notes + _NOTES)
    area = Area(tokens, scale, cache - 12, timeline)
    canvas = Canvas(prefix)
    patterns(canvas)
    y = _draw_head(canvas, area, columns)
    places = []
    for index, row in enumerate(timeline.rows):
        height = _row_height(timeline, index)
        places.append(_Placed(index, y, height))
        canvas.line(_LEFT - 6, y, columns.right, y, "rule")
        if isinstance(row, Gap):
            _draw_gap(canvas, row, columns, y)
        else:
            _draw_row(canvas, area, columns, row, places[-1], _shows_cache(timeline, index))
        y += height
    canvas.line(_LEFT - 6, y, columns.right, y, "rule")
    y = _draw_lasso(canvas, timeline, places, y)
    y = _draw_foot(canvas, timeline, y)
    return canvas.document(columns.right + 8, y + 8, "Timeline of the run", describe(timeline))


def marks_of(timeline: Timeline) -> set[int]:
    """Positions at which something begins or ends."""
    marks = {track.num_prompt_tokens for track in timeline.tracks}
    for track in timeline.tracks:
        for bar in track.bars:
            marks |= {*bar.span, *(edge for run in bar.rows for edge in run)}
    for row in timeline.rows:
        if isinstance(row, StepRow):
            for lane in row.lanes:
                marks |= {*lane.processed, *(lane.drafter or ())}
    return marks


def describe(timeline: Timeline) -> str:
    """The picture in a few sentences."""
    shown = sum(isinstance(row, StepRow) for row in timeline.rows)
    text = f"Token positions across, {shown} steps down."
    for row in timeline.rows:
        if isinstance(row, StepRow) and row.mark is not None:
            text += f" In {row.title}: {row.mark.text}."
    if timeline.lasso is not None:
        text += f" {timeline.lasso.text[0].upper()}{timeline.lasso.text[1:]}."
    return text + " The table below tells each step."


def _draw_head(canvas: Canvas, area: Area, columns: _Columns) -> float:
    """Positions, and the prompt of each request; y below them."""
    timeline = area.timeline
    canvas.text(columns.tokens - 10, 20, "token", "head-line", anchor="end")
    for middle, label in area.scale.ticks(7):
        canvas.text(area.left + middle, 20, label, "tick", anchor="middle")
    first = next(row for row in timeline.rows if isinstance(row, StepRow))
    rows = "1 row" if first.cache.size == 1 else f"{first.cache.size} rows"
    canvas.text(columns.cache, 20, f"cache of {rows}, after", "head-line")
    canvas.text(columns.notes, 20, "why", "head-line")
    y = 32.0
    for track in timeline.tracks:
        alone = len(timeline.tracks) == 1 and not timeline.num_hidden_requests
        what = "encoder input" if timeline.is_encoder_decoder else "prompt"
        label = what if alone else f"{what} of R{track.request}"
        canvas.text(columns.tokens - 10, y + 15, label, "head-line", anchor="end")
        draw_track(canvas, area, track, y)
        y += track_height()
    if timeline.num_hidden_requests:
        note = f"and {timeline.num_hidden_requests} requests that have nothing to do with it"
        canvas.text(columns.tokens, y + 12, note, "sub")
        y += 20
    return y + 6


def _shows_cache(timeline: Timeline, index: int) -> bool:
    """Whether the cache is drawn: not where it is as in the row above."""
    row = timeline.rows[index]
    assert isinstance(row, StepRow)
    if row.mark is not None:
        return True
    if index == 0:
        return bool(row.cache.entries)
    above = timeline.rows[index - 1]
    if isinstance(above, Gap):
        return True
    return row.cache != above.cache


def _row_height(timeline: Timeline, index: int) -> float:
    row = timeline.rows[index]
    if isinstance(row, Gap):
        return 34.0
    lanes = sum(lane_height(lane) for lane in row.lanes) + 18 * bool(row.num_hidden_lanes)
    lanes += _below_title(row)
    cache = cache_height(row.cache) if _shows_cache(timeline, index) else 0
    notes = notes_height(note_lines(row, _NOTES))
    labels = _LINE * (1 + (2 if len(row.lanes) == 1 else 0))
    mark = 24 if row.mark is not None else 0
    return max(lanes, cache, notes, labels) + mark + 2 * _PAD - 6


def _below_title(row: StepRow) -> float:
    """How far the lanes begin below the title: each of several has a label beside it (px)."""
    return 20.0 if len(row.lanes) > 1 else 0.0


def _draw_gap(canvas: Canvas, gap: Gap, columns: _Columns, y: float) -> None:
    steps = "1 step is" if gap.num_steps == 1 else f"{gap.num_steps:,} steps are"
    label = f"⋮ {steps} left out here"
    canvas.text(columns.label, y + 21, label, "sub")
    x = columns.label + text_width(label) + 14
    canvas.path(f"M{x:.1f} {y + 17:.1f}" + "q6 -8 12 0t12 0" * 8, "gap")


def _draw_row(
    canvas: Canvas, area: Area, columns: _Columns, row: StepRow, place: _Placed, with_cache: bool
) -> None:
    top = place.y + _PAD - 2
    is_pass = row.kind == "pass"
    if row.mark is not None:
        height = place.height - 2
        canvas.rect(_LEFT - 6, place.y + 1, columns.right - _LEFT + 6, height, "marked", radius=6)
        canvas.text(columns.label, top + 13, f"✗ contradiction: {row.mark.text}", "mark")
        top += 24
    canvas.text(columns.label, top + 14, row.title, "pass" if is_pass else "step")
    lines_top = top
    lanes_top = top + _below_title(row)
    if is_pass:
        tops = []
        top = lanes_top
        for lane in row.lanes:
            tops.append(top)
            top += lane_height(lane)
        draw_grid(canvas, area, lanes_top, max(top - lanes_top, BAND))
        if row.mark is not None and row.mark.span is not None and not row.mark.in_cache:
            area = replace(area, clear=area.x(row.mark.span.end) + 3)
        for lane, lane_top in zip(row.lanes, tops, strict=True):
            _label_lane(canvas, area, columns, lane, lane_top, len(row.lanes) == 1)
            is_bad = row.mark is not None or not any(running.num_tokens for running in row.lanes)
            draw_lane(canvas, area, lane, lane_top, is_bad)
        if row.num_hidden_lanes:
            label = f"and {row.num_hidden_lanes} more requests run"
            canvas.text(columns.tokens, top + 12, label, "sub")
    if with_cache:
        draw_cache(canvas, area.timeline, row.cache, (columns.cache, lines_top), _CACHE)
    elif row.cache.entries and is_pass:
        canvas.text(columns.cache, lines_top + 14, "as before", "sub")
    draw_notes(canvas, note_lines(row, _NOTES), (columns.notes, lines_top))
    if row.mark is not None and row.mark.in_cache:
        height = cache_height(row.cache)
        canvas.rect(columns.cache - 7, lines_top - 6, _CACHE + 14, height + 6, "ring")
    elif row.mark is not None and row.mark.span is not None and row.lanes:
        start, end = (area.x(position) for position in row.mark.span)
        height = sum(lane_height(lane) for lane in row.lanes if lane.request == row.mark.request)
        above = 0.0
        for lane in row.lanes:
            if lane.request == row.mark.request:
                break
            above += lane_height(lane)
        canvas.rect(start - 3, lanes_top + above - 6, end - start + 6, height + 4, "ring")


def _label_lane(
    canvas: Canvas, area: Area, columns: _Columns, lane: Lane, top: float, is_alone: bool
) -> None:
    start, count = lane.processed.start, lane.num_tokens
    if is_alone:
        is_only = len(area.timeline.tracks) == 1 and not area.timeline.num_hidden_requests
        prefix = "" if is_only else f"R{lane.request}: "
        canvas.text(columns.label, top + 31, f"{prefix}computed {start}", "sub")
        kind = "sub" if count else "bad"
        canvas.text(columns.label, top + 47, f"scheduled {count}", kind)
        return
    label = f"R{lane.request}: {start} + {count}"
    canvas.text(columns.tokens - 10, top + 14, label, "sub", anchor="end")


def _draw_lasso(canvas: Canvas, timeline: Timeline, places: list[_Placed], y: float) -> float:
    """The circle of a stuck run, drawn from the row that is back to the first one."""
    lasso = timeline.lasso
    if lasso is None:
        return y
    first, last = places[lasso.first], places[lasso.last]
    start = last.y + (last.height / 2 if lasso.first != lasso.last else last.height - 12)
    end = first.y + 22
    x = _LEFT - 8
    canvas.path(
        f"M{x} {start:.1f}C{x - 24} {start:.1f} {x - 24} {end:.1f} {x} {end:.1f}", "lasso", "arrow"
    )
    canvas.text(_LEFT, y + 20, f"↺ {lasso.text}", "mark")
    return y + 30


def _draw_foot(canvas: Canvas, timeline: Timeline, y: float) -> float:
    """What of the trace is not shown after the last row."""
    last = next(row for row in reversed(timeline.rows) if isinstance(row, StepRow))
    after = timeline.num_steps - 1 - last.number
    if after <= 0:
        return y
    steps = "1 more step" if after == 1 else f"{after:,} more steps"
    canvas.text(_LEFT, y + 20, f"⋮ the trace holds {steps} after this", "sub")
    return y + 28


def swatch_svg(entry: Entry) -> str:
    """A small piece of a hash's colour and pattern, for a legend beside its name."""
    canvas = Canvas(f"k{entry.order}")
    pattern = pattern_of(entry.order)
    if pattern:
        patterns(canvas, only=pattern)
    canvas.rect(0, 0, 26, 18, f"rows {colour_of(entry.order)}")
    if pattern:
        canvas.rect(0, 0, 26, 18, "pattern", fill=pattern)
    return canvas.ornament(26, 18)
