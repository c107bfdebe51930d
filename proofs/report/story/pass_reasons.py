"""What a pass did and why: who found room, where chunks were cut, what was read and was missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from proofs.report.story.reasons import Before, Reason, Words, room, rows_of, tokens_of
from spec.record.feature import Feature
from spec.record.steps import Call, ErrorSeen, PassSeen, ScheduledRequest


def pass_reasons(step: PassSeen, before: Before, words: Words) -> tuple[Reason, ...]:
    """What a pass did, in the order in which it did it.

    Args:
        step: the pass.
        before: the state in which it began.
        words: names.
    """
    reasons: list[Reason] = []
    scheduled = {entry.request: entry for entry in step.scheduled}
    seen = Room(step, before, words)
    order = list(dict.fromkeys([c.request for c in step.calls if c.request >= 0] + [*scheduled]))
    by_request: dict[int, list[Reason]] = {request: [] for request in order}
    refused: dict[int, int] = {}
    for position, call in enumerate(step.calls):
        if call.request < 0:
            continue
        if call.method == "can_allocate" and call.answer is False:
            refused[call.request] = call.feature
        by_request[call.request] += _tell_call(step, position, seen, words)
        seen.apply(call)
    for request in order:
        own = by_request[request]
        entry = scheduled.get(request)
        if entry is not None or request in refused:
            own.append(tell_chunk(step, request, entry, refused.get(request), before, words))
        reasons += [replace(reason, request=request) for reason in own]
    reasons += _tell_evictions(step, before, words)
    if step.error is not None:
        reasons.append(
            Reason(
                f"scheduling raises {step.error.type}",
                step.error.message.rstrip("."),
                f"raises {step.error.type}",
                is_bad=True,
            )
        )
    elif not step.scheduled:
        reasons.append(Reason("nothing runs", short="nothing runs", is_bad=True))
    return (*reasons, *_tell_worker(step, words))


def passed_over(step: PassSeen) -> tuple[tuple[int, int], ...]:
    """Request and feature of what got room in a pass and was not encoded in the end."""
    return tuple(
        dict.fromkeys(
            _key(call)
            for position, call in enumerate(step.calls)
            if call.request >= 0
            and call.method == "can_allocate"
            and call.answer is True
            and not _is_used(step, position)
        )
    )


def _is_used(step: PassSeen, position: int) -> bool:
    """Whether the room that a call found is taken later in the pass."""
    asked = _key(step.calls[position])
    return any(c.method == "allocate" and _key(c) == asked for c in step.calls[position:])


def _tell_call(step: PassSeen, position: int, seen: Room, words: Words) -> list[Reason]:
    call = step.calls[position]
    subject = words.request(call.request)
    if call.method == "check_and_update_cache" and call.answer:
        return [_tell_hit(call, seen, words)]
    if call.method == "can_allocate":
        if call.answer is False:
            return [_tell_refusal(call, seen, words)]
        if not _is_used(step, position):
            return [_tell_passed_over(step, call, words)]
        return [_tell_room(call, seen, words)]
    if call.method == "allocate_slots" and call.answer is False:
        return [
            Reason(
                f"{subject} gets no KV blocks for {tokens_of(call.budget)}",
                short=f"R{call.request}: no KV blocks for {call.budget}",
            )
        ]
    if call.method == "free":
        if call.request in step.preempted:
            return [
                Reason(
                    f"{subject} is preempted: its references go and it starts again from 0",
                    short=f"R{call.request} preempted",
                )
            ]
        if seen.is_holder(call.request):
            return [
                Reason(
                    f"{subject} gives its references back, since it does not run",
                    short=f"R{call.request} gives back",
                )
            ]
    return []


def _tell_hit(call: Call, seen: Room, words: Words) -> Reason:
    item, letter, rows = words.item(*_key(call)), words.letter(*_key(call)), words.rows(*_key(call))
    stored = seen.rows_of(words.feature(*_key(call)).identifier)
    text = f"{words.request(call.request)} finds {item} in the book and takes a reference"
    if stored in (None, rows):
        return Reason(text, short=f"{letter}: hit")
    return Reason(
        text,
        f"the hash is the same; its entry has {rows_of(stored)}, and {item} has {rows}",
        f"{letter}: hit, {stored} rows for {rows}",
        is_bad=True,
    )


def _key(call: Call) -> tuple[int, int]:
    return call.request, call.feature


def _tell_room(call: Call, seen: Room, words: Words) -> Reason:
    item, rows = words.item(*_key(call)), words.rows(*_key(call))
    wanted = f"{call.chosen} + {rows}" if call.chosen else str(rows)
    because = short = ""
    if seen.is_sure:
        because = (
            f"{_needed(call, rows)} <= available {seen.value}, the rows that are free or can be "
            "freed"
        )
        short = f"room for {words.letter(*_key(call))}: {wanted} <= {seen.value}"
    return Reason(
        f"{item} gets room and is to be encoded",
        because,
        short or f"{words.letter(*_key(call))}: to be encoded",
    )


def _tell_passed_over(step: PassSeen, call: Call, words: Words) -> Reason:
    """What became of an item that got room, where the pass leaves it out after all."""
    letter = words.letter(*_key(call))
    entry = next(
        (scheduled for scheduled in step.scheduled if scheduled.request == call.request), None
    )
    if entry is None:
        because = f"{words.request(call.request)} does not run"
    else:
        scheduled, start = words.feature(*_key(call)), entry.num_computed_tokens
        end = start + entry.num_scheduled_tokens
        because = ""
        if scheduled.offset >= end:
            where = "where" if scheduled.offset == end else "before"
            because = f"the chunk [{start},{end}) ends {where} {letter} begins"
        elif not scheduled.has_row_in(start, end):
            because = f"no row of {letter} lies in the chunk [{start},{end})"
    text = f"{words.item(*_key(call))} was given room and then passed over"
    return Reason(text, because, f"room for {letter}, passed over")


def _needed(call: Call, rows: int) -> str:
    """The rows that an item needs, with those that were chosen before it in the same pass."""
    return f"chosen {call.chosen} + needed {rows}" if call.chosen else f"needed {rows}"


def _tell_refusal(call: Call, seen: Room, words: Words) -> Reason:
    item, letter = words.item(*_key(call)), words.letter(*_key(call))
    rows = words.rows(*_key(call))
    if rows > call.budget:
        return Reason(
            f"{item} is refused: the encoder budget is used up",
            f"needed {rows} <= budget {call.budget} is false",
            f"{letter} refused: {rows} <= {call.budget} false",
        )
    held = " and ".join(
        f"{words.letters[name]} by {words.request(holder)}" for name, holder in seen.holders()
    )
    still = f"; still referenced: {held}" if held else ""
    if not seen.is_sure:
        return Reason(f"{item} gets no room{still}", "", f"no room for {letter}")
    wanted = f"{call.chosen} + {rows}" if call.chosen else str(rows)
    chosen = f", {rows_of(call.chosen)} chosen before it" if call.chosen else ""
    return Reason(
        f"{item} gets no room",
        f"{_needed(call, rows)} <= available {seen.value} is false: {seen.value} of "
        f"{rows_of(words.config.encoder_cache_size)} to be had{chosen}{still}",
        f"no room for {letter}: {wanted} <= {seen.value} false",
    )


def _tell_evictions(step: PassSeen, before: Before, words: Words) -> list[Reason]:
    after = {name for name, _ in step.state.book.references}
    gone = [name for name, _ in before.state.book.references if name not in after]
    reasons = []
    for name in dict.fromkeys([*gone, *step.notices]):
        letter = words.letters.get(name, name)
        is_live = name in after
        if words.config.is_encoder_decoder:
            text = f"the worker is told to drop {letter}"
            reasons.append(Reason(text, "its step has run", is_detail=True))
            continue
        reasons.append(
            Reason(
                f"the worker is told to drop {letter}, which is in the book"
                if is_live
                else f"{letter} is evicted to make room",
                "" if is_live else "nobody references it",
                f"{letter}: told to drop, but live" if is_live else f"{letter} evicted",
                is_bad=is_live,
            )
        )
    return reasons


def _tell_worker(step: PassSeen, words: Words) -> list[Reason]:
    worker = step.worker
    if worker is None:
        return []
    reasons = []
    done = {(encoding.request, encoding.feature) for encoding in worker.encoded}
    skipped = [key for key in step.encoder_inputs if key not in done]
    if done:
        text = f"the worker encodes {_items(sorted(done), words)}"
        reasons.append(Reason(text, is_detail=True))
    if skipped:
        reasons.append(
            Reason(
                f"the worker does not encode {_items(skipped, words)}",
                "it has its tensor already, or lacks its raw data",
                "not encoded: " + ", ".join(words.letter(*key) for key in skipped),
            )
        )
    if not words.config.is_encoder_decoder:
        reasons += _tell_reads(step, words)
    for reader, read in (("target", worker.target), ("drafter", worker.drafter)):
        if read is not None and read.error is not None:
            reasons.append(
                Reason(
                    f"the {reader}'s gather raises {_error(read.error)}",
                    short=f"{reader}'s gather raises",
                    is_bad=True,
                )
            )
    return reasons


def _tell_reads(step: PassSeen, words: Words) -> list[Reason]:
    """What is read and not on the worker, with the boundary test."""
    assert step.worker is not None
    reasons = []
    resident = {name for name, _ in step.worker.contents}
    ahead = words.config.gather_lookahead if step.worker.drafter is not None else 0
    for entry in step.scheduled:
        start, count = entry.num_computed_tokens, entry.num_scheduled_tokens
        for index, feature in enumerate(words.features(entry.request)):
            if feature.identifier in resident:
                continue
            letter = words.letter(entry.request, index)
            if feature.has_row_in(start, start + count):
                reasons.append(
                    Reason(
                        f"the target reads {words.item(entry.request, index)}, which is not on the "
                        "worker",
                        short=f"target: {letter} is missing",
                        is_bad=True,
                        request=entry.request,
                    )
                )
            elif ahead and feature.has_row_in(start + ahead, start + count + ahead):
                at_boundary = feature.offset >= start + count
                is_so = "true" if at_boundary else "false"
                test = f"offset {feature.offset} >= computed {start} + scheduled {count} is {is_so}"
                reasons.append(
                    Reason(
                        f"the drafter, {tokens_of(ahead)} ahead, reads "
                        f"{words.item(entry.request, index)}, which is not on the worker",
                        f"{test}: {letter} "
                        + (
                            "lies at the boundary, and may be missing"
                            if at_boundary
                            else "begins inside the processed range, and must be there"
                        ),
                        f"{letter} missing; {feature.offset} >= {start} + {count} is {is_so}",
                        is_bad=not at_boundary,
                        request=entry.request,
                    )
                )
    return reasons


def _error(error: ErrorSeen) -> str:
    message = error.message.rstrip(".")
    return f"{error.type}: {message}" if message else error.type


def _items(keys: Iterable[tuple[int, int]], words: Words) -> str:
    return ", ".join(words.item(*key) for key in keys)


def tell_chunk(
    step: PassSeen,
    request: int,
    entry: ScheduledRequest | None,
    refused: int | None,
    before: Before,
    words: Words,
) -> Reason:
    """What a request ran in a pass, and what ended its chunk.

    Args:
        step: the pass.
        request: the request.
        entry: what it ran; ``None`` where it ran nothing.
        refused: the feature that it was refused, if there is one.
        before: the state in which the pass began.
        words: names.
    """
    subject = words.request(request)
    if entry is None:
        state = before.request(request)
        start, count = (0 if state is None else state.num_computed_tokens), 0
    else:
        start, count = entry.num_computed_tokens, entry.num_scheduled_tokens
    because = short = ""
    if refused is not None:
        because, short = _tell_cut(start, count, refused, request, words)
    elif entry is not None:
        because = _tell_end(step, entry, words)
    if entry is None:
        return Reason(f"{subject} gets no token and stays at {start}", because, short, is_bad=True)
    end = start + count
    drafts = f", {entry.num_draft_tokens} of them drafts" if entry.num_draft_tokens else ""
    return Reason(f"{subject} runs the positions [{start},{end}){drafts}", because, short)


def _tell_cut(start: int, count: int, refused: int, request: int, words: Words) -> tuple[str, str]:
    """Why a chunk ends before a feature that was refused, if a known rule gives its length."""
    offset, letter = words.feature(request, refused).offset, words.letter(request, refused)
    shift = words.config.scheduler_lookahead
    alignment = words.config.block_alignment
    if count == max(offset - start, 0):
        sum_ = f"{offset} - {start} = {count}" if offset >= start else ""
        arithmetic = f"offset {offset} - computed {start} = {count}: " if sum_ else ""
        return (
            f"{arithmetic}the chunk ends where {letter} begins",
            f"cut before {letter}: {sum_ or '0'}",
        )
    if shift and count == max(offset - start - shift, 0):
        found = offset - start - shift
        sum_ = f"{offset} - ({start} + {shift}) = {found}"
        ahead = tokens_of(shift)
        why = f"the chunk ends {ahead} before {letter}, as far as the scheduler looks ahead"
        named = f"offset {offset} - (computed {start} + shift {shift}) = {found}"
        return f"{named}: {why}", f"cut before {letter}: {sum_}"
    if alignment and count == max(offset // alignment * alignment - start, 0):
        sum_ = f"{offset} // {alignment} * {alignment} - {start} = {count}"
        named = f"offset {offset} // {alignment} * {alignment} - computed {start} = {count}"
        return (
            f"{named}: the cut before {letter} is rounded down to a block boundary",
            f"cut, aligned: {sum_}",
        )
    return f"the chunk ends before {letter}, which was refused", f"cut before {letter}: {count}"


def _tell_end(step: PassSeen, entry: ScheduledRequest, words: Words) -> str:
    """Why a chunk without a refusal ends where it does, where that is a limit."""
    config = words.config
    end = entry.num_computed_tokens + entry.num_scheduled_tokens
    if end >= entry.prefill_len + entry.num_output_placeholders:
        return ""
    if config.whole_items:
        for index, feature in enumerate(words.features(entry.request)):
            if feature.offset == end:
                return f"{words.letter(entry.request, index)} would be split"
    if entry.num_scheduled_tokens == config.long_prefill_token_threshold:
        return f"a prefill chunk has at most {tokens_of(config.long_prefill_token_threshold)}"
    if sum(e.num_scheduled_tokens for e in step.scheduled) == config.max_num_batched_tokens:
        return f"a pass has {tokens_of(config.max_num_batched_tokens)}"
    return ""


class Room:
    """The rows that are free or can be freed while a pass asks for some, call by call.

    Args:
        step: the pass.
        before: the state in which it began.
        words: names.

    Attributes:
        value: rows that are free or can be freed just now.
        is_sure: whether the calls lead to what the book reported at the pass's end, with releases
            that give their rows back or, as a fault may have it, with none that does. Where they
            lead elsewhere, the numbers between are not known.
    """

    def __init__(self, step: PassSeen, before: Before, words: Words) -> None:
        self._words = words
        self._is_counted = words.config.is_encoder_decoder
        for self._releases in (True, False):
            self._start(before)
            for call in step.calls:
                self.apply(call)
            self.is_sure = self.value == room(step.state)
            if self.is_sure:
                break
        self._start(before)

    def _start(self, before: Before) -> None:
        self._rows = dict(before.entry_rows)
        self._holders = {name: set(held) for name, held in before.state.book.references}
        self.value = before.room

    def holders(self) -> list[tuple[str, int]]:
        """Entries that are held just now, with a holder of each."""
        return [(name, min(held)) for name, held in self._holders.items() if held]

    def rows_of(self, name: str) -> int | None:
        """Rows of an entry; ``None`` where there is none."""
        return self._rows.get(name)

    def is_holder(self, request: int) -> bool:
        """Whether the request holds anything just now."""
        return any(request in held for held in self._holders.values())

    def apply(self, call: Call) -> None:
        """Take one call into account."""
        if call.feature >= 0 and call.method in (
            "check_and_update_cache",
            "allocate",
            "free_encoder_input",
        ):
            feature = self._words.feature(call.request, call.feature)
            self._apply_to(call, feature)
        elif call.method == "free" and self._releases:
            for name, held in self._holders.items():
                if call.request in held:
                    held.discard(call.request)
                    self._credit(name, held)

    def _apply_to(self, call: Call, feature: Feature) -> None:
        name = feature.identifier
        if call.method == "check_and_update_cache":
            if call.answer:
                held = self._holders.setdefault(name, set())
                if not held:
                    self.value -= self._rows.get(name, feature.num_rows)
                held.add(call.request)
        elif call.method == "allocate":
            self._rows[name] = feature.num_rows
            if not self._is_counted:
                self._holders[name] = {call.request}
            self.value -= feature.num_rows
        elif not self._releases:
            return
        elif self._is_counted:
            self.value += feature.num_rows
        else:
            held = self._holders.get(name, set())
            if call.request in held:
                held.discard(call.request)
                self._credit(name, held)

    def _credit(self, name: str, held: set[int]) -> None:
        if not held:
            self.value += self._rows.get(name, 0)
