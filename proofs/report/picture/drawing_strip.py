"""The step with the contradiction alone, narrow enough for a telephone."""

from __future__ import annotations

from proofs.report.picture.drawing_cache import cache_height, draw_cache
from proofs.report.picture.drawing_parts import (
    Area,
    draw_lane,
    draw_notes,
    draw_track,
    lane_height,
    note_lines,
    notes_height,
    patterns,
    track_height,
)
from proofs.report.picture.scale import Scale
from proofs.report.picture.svg import Canvas, wrapped_lines
from proofs.report.story.timeline import Lane, Positions, RequestTrack, StepRow, Timeline

STRIP_WIDTH = 332.0
"""Width of the picture (px)."""

_MOST_LANES = 3
_LINE = 17.0
_BESIDE = 128.0


def strip_svg(timeline: Timeline, prefix: str = "s") -> str:
    """The picture of the one step.

    Args:
        timeline: the whole run.
        prefix: begins every id; letters and digits.
    """
    row = timeline.rows[timeline.contradiction]
    assert isinstance(row, StepRow)
    assert row.mark is not None
    lanes = _lanes(row)
    tracks = _tracks(timeline, row, lanes)
    canvas = Canvas(prefix)
    patterns(canvas)
    y = 4.0
    for line in wrapped_lines(f"✗ {row.mark.text}", STRIP_WIDTH, 1.1):
        canvas.text(0, y + 13, line, "mark")
        y += _LINE
    canvas.text(0, y + 15, row.title, "pass")
    y += 24
    first, last = _range(row, lanes, tracks)
    area = Area(0, _scale(timeline, lanes, tracks, first, last), STRIP_WIDTH, timeline)
    if tracks:
        for middle, label in area.scale.ticks(6):
            canvas.text(middle, y + 10, label, "tick", anchor="middle")
        y += 16
    for track in tracks:
        if len(timeline.tracks) > 1:
            canvas.text(STRIP_WIDTH, y + 15, f"request {track.request}", "sub", anchor="end")
        _draw_part(canvas, area, track, y, first, last)
        y += track_height()
        for lane in lanes:
            if lane.request == track.request:
                draw_lane(canvas, area, lane, y + 3, is_bad=True)
                y += lane_height(lane) + 3
    y += 6
    rows = "1 row" if row.cache.size == 1 else f"{row.cache.size} rows"
    canvas.text(0, y + 10, f"encoder cache of {rows}, after it", "head-line")
    y += 18
    draw_cache(canvas, timeline, row.cache, (0, y), STRIP_WIDTH)
    y += cache_height(row.cache)
    notes = note_lines(row, STRIP_WIDTH)
    draw_notes(canvas, notes, (0, y))
    y += notes_height(notes)
    described = f"{row.title}: {row.mark.text}."
    return canvas.document(STRIP_WIDTH, y + 4, "The contradiction", described)


def _lanes(row: StepRow) -> list[Lane]:
    """The request concerned, or those that ran where none is."""
    assert row.mark is not None
    own = [lane for lane in row.lanes if lane.request == row.mark.request]
    return own or list(row.lanes[:_MOST_LANES])


def _tracks(timeline: Timeline, row: StepRow, lanes: list[Lane]) -> list[RequestTrack]:
    assert row.mark is not None
    wanted = {lane.request for lane in lanes}
    if row.mark.request is not None:
        wanted.add(row.mark.request)
    return [track for track in timeline.tracks if track.request in wanted]


def _range(row: StepRow, lanes: list[Lane], tracks: list[RequestTrack]) -> tuple[int, int]:
    """The positions to show: those concerned and what the step does there."""
    assert row.mark is not None
    spans = [lane.processed for lane in lanes]
    spans += [lane.drafter for lane in lanes if lane.drafter is not None]
    for lane in lanes:
        wanted = {*lane.refused, *(read.feature for read in lane.reads)}
        for track in tracks:
            if track.request == lane.request:
                spans += [bar.span for bar in track.bars if bar.feature in wanted]
    if row.mark.span is not None:
        spans.append(row.mark.span)
    if not spans:
        spans = [Positions(0, track.num_prompt_tokens) for track in tracks] or [Positions(0, 1)]
    first = min(span.start for span in spans)
    return max(first - 1, 0), max(span.end for span in spans) + 1


def _scale(
    timeline: Timeline,
    lanes: list[Lane],
    tracks: list[RequestTrack],
    first: int,
    last: int,
) -> Scale:
    last = min(last, timeline.num_positions)
    marks = {edge for lane in lanes for edge in (*lane.processed, *(lane.drafter or ()))}
    for track in tracks:
        marks |= {edge for bar in track.bars for edge in bar.span}
    return Scale(first, last, marks, STRIP_WIDTH - _BESIDE, most_units=16, narrowest=4.0)


def _draw_part(
    canvas: Canvas, area: Area, track: RequestTrack, y: float, first: int, last: int
) -> None:
    """The items of a track that lie in the range."""
    bars = tuple(bar for bar in track.bars if bar.span.start < last and first < bar.span.end)
    draw_track(canvas, area, RequestTrack(track.request, track.num_prompt_tokens, bars), y)
