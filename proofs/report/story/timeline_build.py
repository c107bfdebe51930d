"""Fill in the picture of a run from its trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from proofs.report.story.focus import Focus, focus, place_of
from proofs.report.story.pass_reasons import pass_reasons, passed_over
from proofs.report.story.reasons import Before, Reason, Words, room
from proofs.report.story.timeline import (
    Bar,
    Cache,
    Entry,
    EntryState,
    FeatureRead,
    Gap,
    Lane,
    Lasso,
    Mark,
    Positions,
    ReadState,
    RequestTrack,
    Row,
    StepRow,
    Timeline,
)
from proofs.report.story.update_reasons import event_reasons, update_reasons
from proofs.report.text.letters import letters_of_scenario
from spec.history.history import History
from spec.history.layout import FeatureLayout
from spec.record.feature import Feature
from spec.record.prompts import Prompts
from spec.record.run_findings import LoopFinding
from spec.record.steps import EngineState, LoopBookState, PassSeen, Step, Trace

MOST_BARS = 48
"""Of more features of a request, those are shown that a shown step reads, asks for or marks."""

_EVENTS = {
    "arrival": "arrives",
    "abort": "aborted",
    "continuation": "next input",
    "close": "end of input",
}


def timeline(trace: Trace, finding: LoopFinding | None, mark_step: int | None = None) -> Timeline:
    """The picture of a run, cut to what has to do with its contradiction.

    Args:
        trace: the run, of one step at least.
        finding: what it contradicts; ``None`` where a step alone is to be marked, or nothing.
        mark_step: index of the step to mark, where it is known already.
    """
    return _Builder(trace, finding, focus(trace, finding, mark_step)).build()


def letters_of(trace: Trace) -> dict[str, str]:
    """A short name for each hash of a run."""
    return letters_of_scenario(trace.scenario)


class _Builder:
    """Walks over a trace once."""

    def __init__(self, trace: Trace, finding: LoopFinding | None, chosen: Focus) -> None:
        self._trace = trace
        self._finding = finding
        self._chosen = chosen
        self._config = trace.scenario.config
        self._history = History(trace.scenario)
        self._prompts = Prompts(trace.scenario)
        letters = letters_of(trace)
        self._entries = {
            name: Entry(name, letter, order) for order, (name, letter) in enumerate(letters.items())
        }
        is_alone = len(trace.scenario.requests) == 1
        self._words = Words(letters, self._prompts.features, self._config, is_alone)
        book = LoopBookState((), (), self._config.encoder_cache_size, None)
        self._state = EngineState((), (), (), book)
        self._batches: dict[tuple[int, int], int] = {}
        self._passes: dict[object, int] = {}

    def build(self) -> Timeline:
        """The picture."""
        shown = set(self._chosen.steps)
        rows: list[Row] = []
        missed = 0
        for index, step in enumerate(self._trace.steps[: self._chosen.steps[-1] + 1]):
            seen = self._observe(index, step, index in shown)
            if seen is None:
                missed += 1
                continue
            if missed:
                rows.append(Gap(index - missed, index - 1))
                missed = 0
            rows.append(seen)
        tracks = tuple(self._track(request, rows) for request in self._chosen.requests)
        ends = [bar.span.end for track in tracks for bar in track.bars]
        ends += [track.num_prompt_tokens for track in tracks]
        for row in rows:
            if isinstance(row, StepRow):
                for lane in row.lanes:
                    ends += [lane.processed.end, lane.drafter.end if lane.drafter else 0]
        return Timeline(
            tuple(self._entries.values()),
            tracks,
            len(self._trace.scenario.requests) - len(tracks),
            max(ends, default=1),
            tuple(rows),
            len(self._trace.steps),
            self._lasso(rows),
            self._config.gather_lookahead,
            self._config.is_encoder_decoder,
        )

    def _observe(self, index: int, step: Step, is_shown: bool) -> StepRow | None:
        before = Before(
            self._state,
            dict(self._history.entry_rows) if is_shown else {},
            dict(self._history.items_held) if is_shown else {},
            self._batches,
        )
        on_worker = worker_rows(self._history) if is_shown else {}
        self._prompts.observe(step)
        self._history.observe(step)
        self._state = step.state
        if step.kind == "pass":
            for entry in step.scheduled:
                self._batches[step.index, entry.request] = entry.num_draft_tokens
        row = self._row(index, step, before, on_worker) if is_shown else None
        if step.kind == "update":
            for outcome in step.outcomes:
                self._batches.pop((step.index, outcome.request), None)
        return row

    def _row(self, index: int, step: Step, before: Before, on_worker: dict[str, int]) -> StepRow:
        lanes: tuple[Lane, ...] = ()
        hidden = 0
        cache = cache_of(step, before, on_worker, self._history, self._entries)
        reasons: tuple[Reason, ...]
        match step.kind:
            case "pass":
                lanes, hidden = self._lanes(step, before)
                reasons = pass_reasons(step, before, self._words)
                title = f"pass {step.index}"
            case "update":
                reasons = update_reasons(step, before, self._words)
                title = f"update of pass {step.index}"
            case "event":
                reasons = event_reasons(step, before, self._words)
                title = f"request {step.request} {_EVENTS.get(step.event)}"
                if step.event == "reset":
                    title = "cache reset"
        missing: list[Reason] = []
        if step.kind == "pass" and step.worker is not None:
            missing = lost(cache, before, on_worker, self._entries)
        standing = tuple(
            (state.request, state.status, state.num_computed_tokens, state.num_tokens)
            for state in step.state.requests
            if state.request in self._chosen.requests
            and state.status not in ("finished", "rejected")
        )
        row = StepRow(
            index,
            step.kind,
            place_of(step),
            title,
            lanes,
            hidden,
            standing,
            cache,
            (*reasons, *missing, *drift(cache, before, self._config.is_encoder_decoder)),
            passed_over=passed_over(step) if step.kind == "pass" else (),
        )
        if row.kind == "pass":
            same = (row.lanes, row.reasons, row.cache.entries)
            first = self._passes.setdefault(same, row.pass_index)
            row = replace(row, repeats=None if first == row.pass_index else first)
        if index != self._chosen.step:
            return row
        return replace(row, mark=mark_of(self._finding, row, self._prompts, self._words))

    def _lanes(self, step: PassSeen, before: Before) -> tuple[tuple[Lane, ...], int]:
        refused: dict[int, list[int]] = {}
        for call in step.calls:
            if call.method == "can_allocate" and call.answer is False:
                refused.setdefault(call.request, []).append(call.feature)
        scheduled = {entry.request: entry for entry in step.scheduled}
        order = list(dict.fromkeys([*scheduled, *refused, *step.preempted]))
        if not order:
            order = [*before.state.running, *before.state.waiting]
        lanes = []
        ahead = 0
        if step.worker is not None and step.worker.drafter is not None:
            ahead = self._config.gather_lookahead
        for request in order:
            if request not in self._chosen.requests:
                continue
            entry = scheduled.get(request)
            if entry is None:
                state = before.request(request)
                start = end = 0 if state is None else state.num_computed_tokens
            else:
                start = entry.num_computed_tokens
                end = start + entry.num_scheduled_tokens
            lanes.append(
                Lane(
                    request,
                    Positions(start, end),
                    Positions(start + ahead, end + ahead) if ahead and end > start else None,
                    0 if entry is None else entry.num_draft_tokens,
                    tuple(refused.get(request, ())),
                    self._reads(request, start, end, ahead),
                    request in step.preempted,
                )
            )
        return tuple(lanes), len(order) - len(lanes)

    def _reads(self, request: int, start: int, end: int, ahead: int) -> tuple[FeatureRead, ...]:
        if start == end or self._config.is_encoder_decoder:
            return ()
        found = []
        for feature in self._history.requests[request].layout.meeting(start, end + ahead):
            is_there = feature.identifier in self._history.contents
            missing: ReadState = "missing at the boundary" if feature.offset >= end else "missing"
            state: ReadState = "resident" if is_there else missing
            if feature.has_row_in(start, end):
                found.append(FeatureRead("target", feature.index, state))
            if ahead and feature.has_row_in(start + ahead, end + ahead):
                found.append(FeatureRead("drafter", feature.index, state))
        return tuple(found)

    def _track(self, request: int, rows: list[Row]) -> RequestTrack:
        features = self._prompts.features(request)
        bars = [
            self._bar(request, index, feature)
            for index, feature in enumerate(features)
            if feature.length
        ]
        number = len(bars)
        if number > MOST_BARS:
            wanted = self._wanted(request, rows)
            bars = [bar for bar in bars if bar.feature in wanted][:MOST_BARS]
        tokens = self._trace.scenario.requests[request].num_prompt_tokens
        return RequestTrack(request, tokens, tuple(bars), number - len(bars))

    def _wanted(self, request: int, rows: list[Row]) -> set[int]:
        """Features that a shown step reads, refuses or marks, those of the marked step first."""
        found: set[int] = set()
        for row in rows:
            if not isinstance(row, StepRow):
                continue
            if (
                row.mark is not None
                and row.mark.request == request
                and row.mark.feature is not None
            ):
                found.add(row.mark.feature)
            for lane in row.lanes:
                if lane.request == request:
                    found |= {*lane.refused, *(read.feature for read in lane.reads)}
        return found

    def _bar(self, request: int, index: int, feature: Feature) -> Bar:
        layout = FeatureLayout(index, feature, feature.identifier)
        runs = tuple(
            Positions(position, position + count)
            for position, _, count in layout.segments(feature.offset, feature.end)
        )
        entry = self._entries[feature.identifier].order
        return Bar(request, index, entry, Positions(feature.offset, feature.end), runs)

    def _lasso(self, rows: list[Row]) -> Lasso | None:
        if self._finding is None or self._finding.loop is None:
            return None
        first, last = self._finding.loop
        inside = [
            index
            for index, row in enumerate(rows)
            if isinstance(row, StepRow)
            and (row.kind != "event" or row.pass_index > first)
            and first <= row.pass_index <= last
            and not (row.kind == "update" and row.pass_index < first)
        ]
        if first == last:
            text = f"the state of pass {first} is back: no later pass can differ"
        else:
            text = f"the state before pass {first} is back: passes {first} to {last} for ever"
        return Lasso(inside[0], len(rows) - 1, text)


_IN_CACHE = {
    "slots-conserved",
    "worker-bounded",
    "views-agree",
    "evicted-not-live",
    "released",
    "no-idle-references",
    "dropped-in-update",
    "held-until-last-use",
    "freed-not-needed",
}
"""Claims about the cache and its book rather than about positions."""

_WORDS = {
    "no-stall": "nothing can change any more",
    "no-thrash": "back where it was",
    "boundary-miss-tolerated": "raises, though {} lies at the boundary",
    "target-resident": "reads {}, which is not there",
    "drafter-resident-or-boundary": "reads {} inside the range, and it is not there",
    "need-agrees": "reads {}, which nobody asked for",
    "item-whole": "ends inside {}",
    "held-until-last-use": "nobody holds {}, and a row is still to be read",
    "freed-not-needed": "{} let go too early",
    "boundary-used-when-resident": "{} is there and is not read",
    "interior-miss-raises": "{} is missing, and nothing says so",
    "payload-available": "{} is to be encoded without its raw data",
    "evicted-not-live": "told to drop what is in the book",
    "worker-bounded": "more rows on the worker than the cache has",
    "work-conserving": "could run, and is held up",
    "pass-uses-budget": "could run more in this pass",
    "threshold-kept": "runs more than the threshold",
    "reservation-kept": "leaves too little of the prefill",
    "released": "has ended, and still holds a reference",
    "no-idle-references": "does not run, and still holds a reference",
}


_PASSED_OVER = "reads {}, which was given room and then passed over"


def mark_of(finding: LoopFinding | None, row: StepRow, prompts: Prompts, words: Words) -> Mark:
    """The mark in a row.

    Args:
        finding: what the run contradicts; ``None`` where the step alone is to be marked.
        row: the step.
        prompts: features at the time.
        words: names.
    """
    if finding is None:
        return Mark(None, None, None, in_cache=False, text="differs here")
    request, feature = finding.request, finding.feature
    span: Positions | None = None
    if request is not None and feature is not None:
        item = prompts.features(request)[feature]
        span = Positions(item.offset, item.end)
    if request is not None and span is None:
        span = next((lane.processed for lane in row.lanes if lane.request == request), None)
        if span is not None and span.start == span.end:
            span = Positions(span.start, span.start + 1)
    in_cache = finding.claim in _IN_CACHE
    text = finding.mechanism
    if finding.claim == "slots-conserved":
        text = _slots(finding, row)
    elif finding.claim in _WORDS:
        named = _WORDS[finding.claim]
        if "{}" not in named:
            text = named
        elif request is not None and feature is not None:
            if finding.claim == "need-agrees" and (request, feature) in row.passed_over:
                named = _PASSED_OVER
            text = named.format(words.letter(request, feature))
    return Mark(request, feature, span, in_cache, text)


def _slots(finding: LoopFinding, row: StepRow) -> str:
    cache = row.cache
    if cache.num_free != cache.size - cache.num_taken:
        return f"counts {cache.num_free} free, and {cache.size - cache.num_taken} are"
    if cache.room != cache.true_room:
        return f"counts {cache.room} free or freeable, and {cache.true_room} are"
    return finding.mechanism


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
            history.feature(encoding.request, encoding.feature).identifier
            for encoding in step.worker.encoded
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
    absent = {name for name, _ in before.state.book.references} - on_worker.keys()
    by_order = {entry.order: entry for entry in entries.values()}
    sentences = []
    for state in cache.entries:
        entry = by_order[state.entry]
        in_book = state.state in ("referenced", "freeable")
        if in_book and not state.resident and entry.identifier not in absent:
            text = f"{entry.letter} is in the book, and the worker has no tensor of it"
            sentences.append(Reason(text, short=f"{entry.letter}: no tensor", is_bad=True))
    return sentences
