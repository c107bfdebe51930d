"""The encoder cache in a picture."""

from __future__ import annotations

from proofs.report.picture.drawing_parts import NOTE_LINE, colour_of, pattern_of
from proofs.report.picture.svg import Canvas, fitted, text_width
from proofs.report.story.timeline import Cache, Timeline

_CACHE_HEIGHT = 24.0
_STATES = {
    "referenced": "●",
    "freeable": "○",
    "evicted": "✕",
    "worker only": "◇",
}


def cache_height(cache: Cache) -> float:
    """Height of the cache (px)."""
    lines = min(len(cache.entries), 5) + 1
    return _CACHE_HEIGHT + 6 + lines * NOTE_LINE


def draw_cache(
    canvas: Canvas, timeline: Timeline, cache: Cache, place: tuple[float, float], width: float
) -> None:
    """The cache: its rows, who holds them, and what the book counts."""
    x, y = place
    held = [state for state in cache.entries if state.state in ("referenced", "freeable")]
    rows = max(cache.size, cache.num_taken, 1)
    slot = min(width / rows, 44.0)
    if slot >= 5:
        for index in range(cache.size):
            canvas.rect(x + index * slot, y, slot - 2, _CACHE_HEIGHT, "slot")
    else:
        canvas.rect(x, y, cache.size * slot, _CACHE_HEIGHT, "slot")
    at = x
    for state in held:
        wide = state.rows * slot
        kind = f"rows {colour_of(state.entry)}"
        kind += "" if state.state == "referenced" else " freeable"
        canvas.rect(at, y, wide - 2, _CACHE_HEIGHT, kind)
        if pattern_of(state.entry):
            canvas.rect(at, y, wide - 2, _CACHE_HEIGHT, "pattern", fill=pattern_of(state.entry))
        letter = timeline.entries[state.entry].letter
        if text_width(letter) <= wide:
            kind = f"label {colour_of(state.entry)}"
            kind = "free-label" if state.state == "freeable" else kind
            canvas.text(at + wide / 2 - 1, y + 16.5, letter, kind, anchor="middle")
        at += wide
    if cache.num_taken > cache.size:
        limit = x + cache.size * slot - 1
        canvas.line(limit, y - 4, limit, y + _CACHE_HEIGHT + 4, "stop")
    line = y + _CACHE_HEIGHT + 16
    for text, is_bad in cache_lines(timeline, cache)[:6]:
        canvas.text(x, line, fitted(text, width + 6), "bad" if is_bad else "sub", title=text)
        line += NOTE_LINE


def cache_lines(timeline: Timeline, cache: Cache) -> list[tuple[str, bool]]:
    """What the cache holds in words, the last line what the book counts; whether it is wrong."""
    lines = []
    for state in cache.entries:
        letter = timeline.entries[state.entry].letter
        line = f"{_STATES[state.state]} {letter} "
        match state.state:
            case "referenced":
                line += "held by " + ", ".join(f"R{request}" for request in state.holders)
            case "freeable":
                line += "freeable"
            case "evicted":
                line += "left in this step"
            case "worker only":
                line += "on the worker only"
        if state.encoded:
            line += ", encoded"
        is_lost = state.state in ("referenced", "freeable") and not state.resident
        lines.append((f"✗ {letter}: no tensor" if is_lost else line, is_lost))
    if len(lines) > 5:
        lines = [*lines[:4], (f"and {len(lines) - 4} more", False)]
    true_free = cache.size - cache.num_taken
    if cache.num_free != true_free:
        return [*lines, (f"✗ counts {cache.num_free} free, true {true_free}", True)]
    if cache.room != cache.true_room:
        return [*lines, (f"✗ counts {cache.room}, true {cache.true_room}", True)]
    if cache.num_on_worker > cache.size:
        return [*lines, (f"✗ {cache.num_on_worker} rows on the worker", True)]
    return [*lines, (f"{cache.num_free} of {cache.size} rows free", False)]
