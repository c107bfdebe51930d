"""The pieces of a picture: features, what a pass reads, the cache, the notes beside it."""

from __future__ import annotations

from dataclasses import dataclass

from proofs.report.picture.scale import Scale
from proofs.report.picture.svg import Canvas, fitted, text_width, wrapped_lines
from proofs.report.story.timeline import Bar, Lane, Positions, RequestTrack, StepRow, Timeline
from proofs.report.text.plain import name

BAND = 22.0
"""Height of a bracket (px)."""

STRIP = 11.0
"""Height of the strip that shows what is resident (px)."""

_GAP = 5.0
_BOLD = 1.13
"""How much wider bold text is."""

NOTE_LINE = 16.0
"""Height of a line of small text (px)."""

_MOST_NOTES = 7
_NUM_COLOURS, _NUM_PATTERNS = 8, 6


def colour_of(order: int) -> str:
    """The class of a hash's colour."""
    return f"hash{order % _NUM_COLOURS}"


def pattern_of(order: int) -> str:
    """The name of a hash's pattern; empty for plain. Colours come round before patterns do."""
    number = order % _NUM_PATTERNS
    return f"pattern{number}" if number else ""


def patterns(canvas: Canvas, only: str = "") -> None:
    """The patterns that tell hashes apart without colour, and the head of an arrow.

    Args:
        canvas: where they are used.
        only: the one pattern that is used.
    """
    shapes = (
        '<path d="M0 6L6 0" class="hatch"/>',
        '<path d="M0 0L6 6" class="hatch"/>',
        '<circle cx="3" cy="3" r="1.3" class="dot"/>',
        '<path d="M0 3H6" class="hatch"/>',
        '<path d="M3 0V6" class="hatch"/>',
    )
    made = "".join(
        f'<pattern id="{canvas.prefix}-pattern{number}" width="6" height="6" '
        f'patternUnits="userSpaceOnUse">{shape}</pattern>'
        for number, shape in enumerate(shapes, start=1)
        if only in ("", f"pattern{number}")
    )
    if only:
        canvas.raw(f"<defs>{made}</defs>")
        return
    arrow = (
        f'<marker id="{canvas.prefix}-arrow" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker>'
    )
    canvas.raw(f"<defs>{made}{arrow}</defs>")


@dataclass(frozen=True)
class Area:
    """Where token positions are drawn.

    Attributes:
        left: x of the first position.
        scale: positions to x.
        right: x up to which text may run on.
        timeline: the whole picture, for features and their hashes.
        clear: x up to which text would cross the ring around what is concerned.
    """

    left: float
    scale: Scale
    right: float
    timeline: Timeline
    clear: float = 0.0

    def x(self, position: int) -> float:
        """Where a position begins."""
        return self.left + self.scale.x(position)

    def beside(self, x: float) -> float:
        """Where text begins that belongs to something that ends at x."""
        return max(x, self.clear) + 8

    def letter(self, bar: Bar) -> str:
        """The short name of a feature's hash."""
        return self.timeline.entries[bar.entry].letter


def draw_bar(canvas: Canvas, area: Area, bar: Bar, y: float, height: float) -> None:
    """A feature: its span in outline, the positions that take a row filled."""
    order = bar.entry
    x, width = area.x(bar.span.start), area.x(bar.span.end) - area.x(bar.span.start)
    entry = area.timeline.entries[order]
    full = f"{name(entry.identifier)} at [{bar.span.start},{bar.span.end})"
    full += f" of request {bar.request}, {bar.num_rows} rows"
    canvas.rect(x + 1, y, width - 2, height, f"span {colour_of(order)}", title=full)
    for start, end in bar.rows:
        left, wide = area.x(start) + 1, area.x(end) - area.x(start) - 2
        if wide <= 0:
            continue
        canvas.rect(left, y, wide, height, f"rows {colour_of(order)}")
        if pattern_of(order):
            canvas.rect(left, y, wide, height, "pattern", fill=pattern_of(order))
    rows = "1 row" if bar.num_rows == 1 else f"{bar.num_rows} rows"
    for label in (f"{entry.letter} · {rows}", entry.letter):
        if text_width(label) <= width - 4:
            kind = f"label {colour_of(order)}"
            canvas.text(x + width / 2, y + height / 2 + 4.3, label, kind, anchor="middle")
            break


def track_height() -> float:
    """Height of a request's track (px)."""
    return BAND + 8


def draw_track(canvas: Canvas, area: Area, track: RequestTrack, y: float) -> None:
    """The prompt of a request with its features; dots where there is text."""
    end = area.x(track.num_prompt_tokens)
    canvas.line(area.left, y + BAND / 2, end, y + BAND / 2, "prompt")
    if area.scale.unit >= 14 and not area.scale.shortened:
        covered = {p for bar in track.bars for p in range(*bar.span)}
        for position in range(track.num_prompt_tokens):
            if position not in covered and area.x(position) < area.x(position + 1):
                middle = (area.x(position) + area.x(position + 1)) / 2
                canvas.raw(f'<circle class="text" cx="{middle:.1f}" cy="{y + BAND / 2}" r="2.6"/>')
    for bar in track.bars:
        draw_bar(canvas, area, bar, y, BAND)
    if track.num_hidden_bars:
        canvas.text(end + 6, y + 15, f"+{track.num_hidden_bars} more items", "sub")


def lane_height(lane: Lane) -> float:
    """Height of what a pass does for one request (px)."""
    bands = 1 + (lane.drafter is not None) + bool(lane.refused)
    strip = STRIP + _GAP if lane.reads else 0
    return bands * (BAND + _GAP) + strip + _GAP


def draw_lane(canvas: Canvas, area: Area, lane: Lane, y: float, is_bad: bool) -> None:
    """What a pass processes for a request, what the drafter reads, and what was refused.

    Args:
        canvas: where to draw.
        area: where positions lie.
        lane: what to draw.
        y: its top (px).
        is_bad: whether a request that does not run is part of what goes wrong.
    """
    start, end = lane.processed
    if lane.num_tokens > 0:
        bottom = y + lane_height(lane) - 2 * _GAP
        canvas.line(area.x(end), y - 3, area.x(end), bottom, "end")
        label = f"target reads {_positions(start, end)}"
        _bracket(canvas, area, lane.processed, y, "target", label)
    else:
        _draw_stop(canvas, area, lane, y, is_bad)
    y += BAND + _GAP
    if lane.drafter is not None:
        label = f"drafter reads {_positions(*lane.drafter)}"
        _bracket(canvas, area, lane.drafter, y, "draft", label)
        y += BAND + _GAP
    if lane.refused:
        for feature in lane.refused:
            bar = area.timeline.bar(lane.request, feature)
            if bar is not None:
                rows = "1 row" if bar.num_rows == 1 else f"{bar.num_rows} rows"
                label = f"{area.letter(bar)} wants {rows}: refused"
                _bracket(canvas, area, bar.span, y, "want", label)
        y += BAND + _GAP
    if lane.reads:
        _draw_reads(canvas, area, lane, y)


def _draw_stop(canvas: Canvas, area: Area, lane: Lane, y: float, is_bad: bool) -> None:
    """Where a request stands that runs nothing."""
    x = area.x(lane.processed.start)
    canvas.line(x, y - 3, x, y + BAND + 3, "stop" if is_bad else "end")
    label = (
        f"preempted at {lane.processed.start}"
        if lane.preempted
        else f"stays at {lane.processed.start}"
    )
    kind = "bad" if is_bad else "sub"
    if text_width(label, _BOLD) <= x - area.left - 8:
        canvas.text(x - 7, y + 15.3, label, kind, anchor="end")
    else:
        canvas.text(area.beside(x), y + 15.3, label, kind)


def _positions(start: int, end: int) -> str:
    return str(start) if end == start + 1 else f"{start}\u2013{end - 1}"


def _bracket(canvas: Canvas, area: Area, span: Positions, y: float, kind: str, label: str) -> None:
    """A range of positions with its words inside, or beside it where they do not fit."""
    x, end = area.x(span.start), area.x(span.end)
    canvas.rect(x + 1, y, end - x - 2, BAND, kind, title=label)
    scale = _BOLD if kind == "want" else 1.0
    width = text_width(label, scale)
    beside = area.beside(end)
    if width > max(end - x - 14, area.right - beside, x - area.left - 8):
        # "B wants 4 rows: refused" says as much without its middle.
        label = f"{label.split()[0]} {label.rpartition(' ')[2]}"
        width = text_width(label, scale)
    if width <= end - x - 14:
        canvas.text(x + 8, y + 15.3, label, f"in-{kind}")
    elif width <= area.right - beside:
        canvas.text(beside, y + 15.3, label, f"by-{kind}")
    elif width <= x - area.left - 8:
        canvas.text(x - 8, y + 15.3, label, f"by-{kind}", anchor="end")
    else:
        short = fitted(label, area.right - beside, scale)
        canvas.text(beside, y + 15.3, short, f"by-{kind}", title=label)


def _draw_reads(canvas: Canvas, area: Area, lane: Lane, y: float) -> None:
    """The features that are read: filled where the worker has the tensor, hollow where not."""
    by_feature = {read.feature: read for read in lane.reads}
    for feature, read in by_feature.items():
        bar = area.timeline.bar(lane.request, feature)
        if bar is None:
            continue
        x, end = area.x(bar.span.start), area.x(bar.span.end)
        letter = area.letter(bar)
        if read.state == "resident":
            title = f"{letter} is on the worker"
            kind = f"rows {colour_of(bar.entry)}"
            canvas.rect(x + 1, y, end - x - 2, STRIP, kind, title=title)
            if pattern_of(bar.entry):
                canvas.rect(x + 1, y, end - x - 2, STRIP, "pattern", fill=pattern_of(bar.entry))
            continue
        title = f"{letter} is not on the worker"
        canvas.rect(x + 1, y, end - x - 2, STRIP, "absent", title=title)
        label = f"{letter} not on the worker"
        if text_width(label, _BOLD) <= area.right - area.beside(end):
            canvas.text(area.beside(end), y + STRIP - 1, label, "bad")


def draw_grid(canvas: Canvas, area: Area, y: float, height: float) -> None:
    """Faint lines between positions, where they are wide enough."""
    if area.scale.unit < 14 or area.scale.shortened:
        return
    for position in range(area.timeline.num_positions + 1):
        canvas.line(area.x(position), y, area.x(position), y + height, "grid")


def note_lines(row: StepRow, width: float) -> list[tuple[str, bool]]:
    """The reasons of a step in short lines, and whether each is part of what goes wrong.

    Where there are too many, those that go wrong or are about the request concerned stay.
    """
    if row.repeats is not None:
        return [(f"just as pass {row.repeats}", False)]
    shown = [reason for reason in row.reasons if reason.short]
    left_out = len(shown) - _MOST_NOTES
    if left_out > 0:
        concerned = None if row.mark is None else row.mark.request
        first = [r for r in shown if r.is_bad or (concerned is not None and r.request == concerned)]
        rest = [reason for reason in shown if reason not in first]
        kept = [*first, *rest][:_MOST_NOTES]
        shown = [reason for reason in shown if reason in kept]
    lines: list[tuple[str, bool]] = []
    for reason in shown:
        sign = "✗ " if reason.is_bad else ""
        for index, line in enumerate(wrapped_lines(sign + reason.short, width)):
            lines.append((("  " if index else "") + line, reason.is_bad))
    if left_out > 0:
        lines.append((f"and {left_out} more", False))
    return lines


def draw_notes(canvas: Canvas, lines: list[tuple[str, bool]], place: tuple[float, float]) -> None:
    """Short lines beside a step."""
    x, y = place
    for index, (line, is_bad) in enumerate(lines):
        canvas.text(x, y + 14 + index * NOTE_LINE, line, "why bad" if is_bad else "why")


def notes_height(lines: list[tuple[str, bool]]) -> float:
    """Height of such lines (px)."""
    return len(lines) * NOTE_LINE + 4
