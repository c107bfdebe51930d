"""What a pass did and why: who found room, where chunks were cut, what was read and was missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from proofs.report.story.chunk_reasons import tell_chunk
from proofs.report.story.reasons import Before, Reason, Words, rows_of, tokens_of
from proofs.report.story.room import Room
from spec.record.steps import Call, ErrorSeen, PassSeen


def pass_reasons(step: PassSeen, before: Before, words: Words) -> tuple[Reason, ...]:
    """What a pass did, in the order in which it did it.

    Args:
        step: the pass.
        before: the state in which it began.
        words: names.
    """
    told: list[Reason] = []
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
        told += [replace(reason, request=request) for reason in own]
    told += _tell_evictions(step, before, words)
    if step.error is not None:
        told.append(
            Reason(
                f"scheduling raises {step.error.type}",
                step.error.message.rstrip("."),
                f"raises {step.error.type}",
                is_bad=True,
            )
        )
    elif not step.scheduled:
        told.append(Reason("nothing runs", short="nothing runs", is_bad=True))
    return (*told, *_tell_worker(step, words))


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
    who = words.request(call.request)
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
                f"{who} gets no KV blocks for {tokens_of(call.budget)}",
                short=f"R{call.request}: no KV blocks for {call.budget}",
            )
        ]
    if call.method == "free":
        if call.request in step.preempted:
            return [
                Reason(
                    f"{who} is preempted: its references go and it starts again from 0",
                    short=f"R{call.request} preempted",
                )
            ]
        if seen.is_holder(call.request):
            return [
                Reason(
                    f"{who} gives its references back, since it does not run",
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
    entry = next((one for one in step.scheduled if one.request == call.request), None)
    if entry is None:
        because = f"{words.request(call.request)} does not run"
    else:
        one, start = words.feature(*_key(call)), entry.num_computed_tokens
        end = start + entry.num_scheduled_tokens
        because = ""
        if one.offset >= end:
            where = "where" if one.offset == end else "before"
            because = f"the chunk [{start},{end}) ends {where} {letter} begins"
        elif not one.has_row_in(start, end):
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
    told = []
    for name in dict.fromkeys([*gone, *step.notices]):
        letter = words.letters.get(name, name)
        is_live = name in after
        if words.config.is_encoder_decoder:
            text = f"the worker is told to drop {letter}"
            told.append(Reason(text, "its step has run", is_detail=True))
            continue
        told.append(
            Reason(
                f"the worker is told to drop {letter}, which is in the book"
                if is_live
                else f"{letter} is evicted to make room",
                "" if is_live else "nobody references it",
                f"{letter}: told to drop, but live" if is_live else f"{letter} evicted",
                is_bad=is_live,
            )
        )
    return told


def _tell_worker(step: PassSeen, words: Words) -> list[Reason]:
    worker = step.worker
    if worker is None:
        return []
    told = []
    done = {(encoding.request, encoding.feature) for encoding in worker.encoded}
    skipped = [key for key in step.encoder_inputs if key not in done]
    if done:
        text = f"the worker encodes {_items(sorted(done), words)}"
        told.append(Reason(text, is_detail=True))
    if skipped:
        told.append(
            Reason(
                f"the worker does not encode {_items(skipped, words)}",
                "it has its tensor already, or lacks its raw data",
                "not encoded: " + ", ".join(words.letter(*key) for key in skipped),
            )
        )
    if not words.config.is_encoder_decoder:
        told += _tell_reads(step, words)
    for reader, read in (("target", worker.target), ("drafter", worker.drafter)):
        if read is not None and read.error is not None:
            told.append(
                Reason(
                    f"the {reader}'s gather raises {_error(read.error)}",
                    short=f"{reader}'s gather raises",
                    is_bad=True,
                )
            )
    return told


def _tell_reads(step: PassSeen, words: Words) -> list[Reason]:
    """What is read and not on the worker, with the boundary test."""
    assert step.worker is not None
    told = []
    resident = {name for name, _ in step.worker.contents}
    ahead = words.config.gather_lookahead if step.worker.drafter is not None else 0
    for entry in step.scheduled:
        start, count = entry.num_computed_tokens, entry.num_scheduled_tokens
        for index, one in enumerate(words.features(entry.request)):
            if one.identifier in resident:
                continue
            letter = words.letter(entry.request, index)
            if one.has_row_in(start, start + count):
                told.append(
                    Reason(
                        f"the target reads {words.item(entry.request, index)}, which is not on the "
                        "worker",
                        short=f"target: {letter} is missing",
                        is_bad=True,
                        request=entry.request,
                    )
                )
            elif ahead and one.has_row_in(start + ahead, start + count + ahead):
                at_boundary = one.offset >= start + count
                is_so = "true" if at_boundary else "false"
                test = f"offset {one.offset} >= computed {start} + scheduled {count} is {is_so}"
                told.append(
                    Reason(
                        f"the drafter, {tokens_of(ahead)} ahead, reads "
                        f"{words.item(entry.request, index)}, which is not on the worker",
                        f"{test}: {letter} "
                        + (
                            "lies at the boundary, and may be missing"
                            if at_boundary
                            else "begins inside the processed range, and must be there"
                        ),
                        f"{letter} missing; {one.offset} >= {start} + {count} is {is_so}",
                        is_bad=not at_boundary,
                        request=entry.request,
                    )
                )
    return told


def _error(error: ErrorSeen) -> str:
    message = error.message.rstrip(".")
    return f"{error.type}: {message}" if message else error.type


def _items(keys: Iterable[tuple[int, int]], words: Words) -> str:
    return ", ".join(words.item(*key) for key in keys)
