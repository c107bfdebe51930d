"""Why a chunk of tokens ends where it does."""

from __future__ import annotations

from proofs.report.story.reasons import Before, Reason, Words, tokens_of
from spec.record.steps import PassSeen, ScheduledRequest


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
    who = words.request(request)
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
        return Reason(f"{who} gets no token and stays at {start}", because, short, is_bad=True)
    end = start + count
    drafts = f", {entry.num_draft_tokens} of them drafts" if entry.num_draft_tokens else ""
    return Reason(f"{who} runs the positions [{start},{end}){drafts}", because, short)


def _tell_cut(start: int, count: int, refused: int, request: int, words: Words) -> tuple[str, str]:
    """Why a chunk ends before a feature that was refused, if a known rule gives its length."""
    offset, letter = words.feature(request, refused).offset, words.letter(request, refused)
    shift = words.config.scheduler_lookahead
    alignment = words.config.block_alignment
    if count == max(offset - start, 0):
        sum_ = f"{offset} - {start} = {count}" if offset >= start else ""
        told = f"offset {offset} - computed {start} = {count}: " if sum_ else ""
        return (
            f"{told}the chunk ends where {letter} begins",
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
        for index, one in enumerate(words.features(entry.request)):
            if one.offset == end:
                return f"{words.letter(entry.request, index)} would be split"
    if entry.num_scheduled_tokens == config.long_prefill_token_threshold:
        return f"a prefill chunk has at most {tokens_of(config.long_prefill_token_threshold)}"
    if sum(e.num_scheduled_tokens for e in step.scheduled) == config.max_num_batched_tokens:
        return f"a pass has {tokens_of(config.max_num_batched_tokens)}"
    return ""
