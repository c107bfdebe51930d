"""A short digest of a run: two runs of one scenario have the same exactly when nothing differs."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from pydantic_core import to_json

from spec.record.steps import LoopBookState, Read, Step, Trace, WorkerSeen

_DIGITS = 16


def digest(trace: Trace) -> str:
    """Sixteen hexadecimal digits over the steps and the ending.

    What says nothing is left out, as in :func:`spec.record.compare.first_difference`: the order of
    entries and of requests beside each other, and what only runs with tensors record.
    """
    found = hashlib.sha256(trace.ending.encode())
    for step in trace.steps:
        found.update(to_json(_plain(step)))
    return found.hexdigest()[:_DIGITS]


def _plain(step: Step) -> Step:
    step = replace(step, state=replace(step.state, book=_plain_book(step.state.book)))
    if step.kind == "pass" and step.worker is not None:
        return replace(step, worker=_plain_worker(step.worker))
    return step


def _plain_book(book: LoopBookState) -> LoopBookState:
    entries = ((name, tuple(sorted(requests))) for name, requests in book.references)
    return replace(book, references=tuple(sorted(entries)))


def _plain_worker(worker: WorkerSeen) -> WorkerSeen:
    return replace(
        worker,
        contents=tuple(sorted(worker.contents)),
        target=_plain_read(worker.target),
        drafter=None if worker.drafter is None else _plain_read(worker.drafter),
    )


def _plain_read(read: Read) -> Read:
    return replace(read, merged=None)
