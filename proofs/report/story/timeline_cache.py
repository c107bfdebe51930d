"""The encoder cache after a step: what the book holds, what the worker has, what is counted."""

from __future__ import annotations

from collections.abc import Mapping

from proofs.report.story.reasons import Before, Reason, room
from proofs.report.story.timeline import Cache, Entry, EntryState
from spec.history.history import History
from spec.record.steps import Step


def worker_rows(history: History) -> dict[str, int]:
    """Rows of each tensor on the worker, by hash."""
    return {
        name: history.encodings[number][0].num_rows if number in history.encodings else 0
        for name, number in history.contents.items()
    }


def cache_of(
    step: Step,
    before: Before,
    on_worker: Mapping[str, int],
    history: History,
    entries: Mapping[str, Entry],
) -> Cache:
    """The cache after a step.

    Args:
        step: the step.
        before: what was known before it.
        on_worker: rows of each tensor on the worker before it.
        history: the run so far, the step included.
        entries: all hashes.
    """
    size = history.config.encoder_cache_size
    holders = history.holders()
    rows_of = dict(history.entry_rows)
    if history.config.is_encoder_decoder:
        rows_of = {}
        for (request, feature), rows in history.items_held.items():
            name = history.feature(request, feature).identifier
            rows_of[name] = rows_of.get(name, 0) + rows
    tensors = worker_rows(history)
    gone = {name for name, _ in before.state.book.references} | on_worker.keys()
    encoded: set[str] = set()
    if step.kind == "pass" and step.worker is not None:
        encoded = {
            history.feature(one.request, one.feature).identifier for one in step.worker.encoded
        }
    states = []
    for name, entry in entries.items():
        is_resident, is_new = name in tensors, name in encoded
        rows = rows_of.get(name, tensors.get(name, 0))
        if name in holders:
            held = tuple(sorted(holders[name]))
            what = EntryState(
                entry.order, rows, held, "referenced" if held else "freeable", is_resident, is_new
            )
        elif is_resident:
            what = EntryState(entry.order, rows, (), "worker only", is_resident, is_new)
        elif name in gone:
            rows = before.entry_rows.get(name, on_worker.get(name, 0))
            what = EntryState(entry.order, rows, (), "evicted", resident=False)
        else:
            continue
        states.append(what)
    taken = sum(rows for name, rows in rows_of.items() if name in holders)
    held_rows = sum(rows_of.get(name, 0) for name, held in holders.items() if held)
    return Cache(
        size,
        tuple(states),
        taken,
        step.state.book.num_free_slots,
        room(step.state),
        size - held_rows,
        sum(tensors.values()),
    )


def drift(cache: Cache, before: Before, is_encoder_decoder: bool) -> list[Reason]:
    """That the book's count of room went wrong in a step, if it did.

    Args:
        cache: the cache after the step.
        before: what was known before it.
        is_encoder_decoder: whether the book counts items and keeps no entries.
    """
    held = (name for name, holders in before.state.book.references if holders)
    true_before = cache.size - sum(before.entry_rows.get(name, 0) for name in held)
    if is_encoder_decoder:
        true_before = cache.size - sum(before.items_held.values())
    off = cache.room - cache.true_room
    if not off or off == before.room - true_before:
        return []
    return [
        Reason(
            f"the book now counts {cache.room} of {cache.size} rows as free or freeable",
            f"size {cache.size} - referenced {cache.size - cache.true_room} = {cache.true_room} "
            "are",
            f"book: {cache.room} to be had, true {cache.true_room}",
            is_bad=True,
        )
    ]


def lost(
    cache: Cache, before: Before, on_worker: Mapping[str, int], entries: Mapping[str, Entry]
) -> list[Reason]:
    """Entries of the book that have been without a tensor since this pass.

    Args:
        cache: the cache after the pass.
        before: what was known before it.
        on_worker: rows of each tensor on the worker before it.
        entries: all hashes.
    """
    known = {name for name, _ in before.state.book.references} - on_worker.keys()
    by_order = {entry.order: entry for entry in entries.values()}
    told = []
    for state in cache.entries:
        entry = by_order[state.entry]
        in_book = state.state in ("referenced", "freeable")
        if in_book and not state.resident and entry.identifier not in known:
            text = f"{entry.letter} is in the book, and the worker has no tensor of it"
            told.append(Reason(text, short=f"{entry.letter}: no tensor", is_bad=True))
    return told
