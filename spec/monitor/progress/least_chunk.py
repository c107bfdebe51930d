"""The fewest tokens that any right engine runs of a request, given what a pass has for it.

Engines differ in where a chunk ends: before a refused item or as far ahead of it as the drafter
reads, at a block boundary of the prompt or of the chunk, and short of a prefill's end or not. Where
they differ, the shortest of these chunks counts: the benefit of the doubt is the engine's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spec.record.config import EngineConfig
from spec.record.feature import Feature


@dataclass(frozen=True, slots=True)
class Wish:
    """What a request would run, and where it stands when its turn comes (tokens).

    Attributes:
        start: its progress, a prefix that it found included.
        wanted: tokens that are known, drafted or sampled, and not computed.
        num_tokens: its prompt and what it generated.
        is_running: whether it runs already.
        features: its features.
        refused: offsets of those that were refused.
    """

    start: int
    wanted: int
    num_tokens: int
    is_running: bool
    features: Sequence[Feature] = ()
    refused: Sequence[int] = ()


def least_chunk(wish: Wish, tokens: int, config: EngineConfig) -> int:
    """The fewest tokens that a right engine runs; 0 where one may run none.

    Args:
        wish: what the request would run.
        tokens: the least that the pass may have left when its turn comes.
        config: the engine's settings.
    """
    start, shift = wish.start, config.scheduler_lookahead
    if not wish.is_running and wish.wanted <= 1 and tokens <= config.num_speculative_tokens:
        return 0  # An engine may pad a decode that it admits to a sampled token and its drafts.
    # A real engine runs no token past the last position that its KV blocks hold.
    longest = config.num_kv_blocks * config.block_size - 1 - start
    most = min(wish.wanted, tokens, longest)
    threshold = config.long_prefill_token_threshold
    if threshold:
        most = min(most, threshold)
    for offset in wish.refused:
        most = min(most, offset - shift - start)
    most = _before_whole_items(wish, most, config)
    if config.block_alignment:
        most = _at_boundary(wish, most, config)
    left = wish.num_tokens - start - most
    if shift > 1 and 0 < left < shift:
        most = _before_whole_items(wish, most - (shift - left), config)
    return max(most, 0)


def _before_whole_items(wish: Wish, most: int, config: EngineConfig) -> int:
    """Tokens up to an item that would be split, or lies in the window and is not finished."""
    if not config.whole_items or config.is_encoder_decoder:
        return most
    start, shift = wish.start, config.scheduler_lookahead
    # From the last item on: a cut ahead of one may lie in the one before it.
    for feature in reversed(wish.features):
        if start <= feature.offset < start + most + shift and start + most < feature.end:
            most = feature.offset - shift - start
    return most


def _at_boundary(wish: Wish, most: int, config: EngineConfig) -> int:
    """Tokens up to the nearest place at which some engine ends an aligned chunk of a prefill."""
    start, block = wish.start, config.block_alignment
    if start >= wish.num_tokens - 1:
        return most
    end = start + most
    ends = [end]
    if end < wish.num_tokens and (end // block * block > start or block <= config.longest_chunk):
        ends += [end // block * block, start + most // block * block]
    # Engines stop at one of the last boundaries of a prompt, to keep what is computed there.
    last = wish.num_tokens // block * block
    stops = [last, last - block, last - 2 * block]
    if start % block:
        stops.append((start // block + 1) * block)
    ends += [stop for stop in stops if start < stop < end]
    return min(ends) - start
