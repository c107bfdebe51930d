"""Build one legal scenario from a source of choices. Nothing is filtered: each draw is legal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from proofs.search.runs.choices import Choose
from proofs.search.runs.frame import SMALL, Assumption, Frame, Scale, Trait, draw_frame, draw_traits
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Continuation, FailedLoad, Scenario, ScenarioRequest


@dataclass(frozen=True)
class Turn:
    """The tokens of a prompt or of a continuation."""

    num_prompt_tokens: int
    features: tuple[Feature, ...]
    contents: tuple[str, ...]


class Prompts:
    """Draws the prompts of one scenario.

    Identifiers are new for each item, or taken from a small pool that all requests share.
    """

    def __init__(self, choose: Choose, frame: Frame) -> None:
        self._choose = choose
        self._frame = frame
        self._num_items = 0
        self._shared = "shared hashes" in frame.traits
        self._pool: list[Feature] = []
        if self._shared:
            self._pool = [self._new_item() for _ in range(choose.integer(1, 3))]

    def turn(self, start: int, *, may_be_text: bool) -> Turn:
        """Tokens from position ``start`` on; feature offsets are counted from it."""
        choose, frame = self._choose, self._frame
        if "encoder-decoder" in frame.traits:
            return self._encoder_decoder_turn()
        least = 0 if may_be_text else 1
        placed: list[Feature] = []
        end = 0
        for _ in range(choose.integer(least, frame.scale.most_items)):
            feature = replace(item := self._item(), offset=self._offset(item, start, end))
            placed.append(feature)
            end = feature.end
        most_tail = frame.reach if "tails" in frame.traits else frame.scale.most_text
        length = max(1, end + choose.integer(0, most_tail))
        if "last chunks" in frame.traits and choose.chance(70):
            # Behind full chunks, fewer tokens are left than the modules read.
            left = choose.integer(1, max(1, frame.scheduler_lookahead - 1))
            length += (left - start - length) % frame.chunk
        return Turn(length, tuple(placed), self._contents(placed))

    def _encoder_decoder_turn(self) -> Turn:
        choose = self._choose
        has_item = not choose.chance(20)
        features = (self._item(),) if has_item else ()
        length = choose.integer(1, max(2, self._frame.chunk))
        return Turn(length, features, self._contents(features))

    def _item(self) -> Feature:
        """An item at offset 0."""
        if not self._shared:
            return self._new_item()
        item = self._choose.pick(self._pool)
        if "hash-has-one-row-count" in self._frame.breaks and self._choose.chance(40):
            longest = self._frame.longest_item
            return Feature(0, self._choose.integer(1, longest), item.identifier)
        return item

    def _new_item(self) -> Feature:
        choose, frame = self._choose, self._frame
        longest = frame.longest_item
        if "chunk edges" in frame.traits and choose.chance(50):
            length = frame.chunk + choose.integer(-frame.reach, frame.reach)
            length = min(max(1, length), longest)
        else:
            length = choose.integer(min(frame.scale.least_length, longest), longest)
        often = 100 if "scheduler-looks-as-far" in frame.breaks else 70
        mask = self._mask(length) if "masks" in frame.traits and choose.chance(often) else None
        identifier = _name(self._num_items)
        self._num_items += 1
        return Feature(0, length, identifier, mask)

    def _mask(self, length: int) -> tuple[bool, ...]:
        """Runs of F at both ends, and at most one hole; at least one T."""
        choose = self._choose
        most = self._frame.reach + 1
        least = int(length > 1 and "scheduler-looks-as-far" in self._frame.breaks)
        leading = choose.integer(least, max(least, min(most, length - 1)))
        trailing = choose.integer(0, min(most, length - 1 - leading))
        middle = [True] * (length - leading - trailing)
        if len(middle) > 2 and choose.chance(40):
            middle[choose.integer(1, len(middle) - 2)] = False
        return (*[False] * leading, *middle, *[False] * trailing)

    def _offset(self, item: Feature, start: int, end: int) -> int:
        """Where the item goes: behind ``end``, both counted from ``start``."""
        choose, frame = self._choose, self._frame
        if "crowds" in frame.traits and not end:
            return choose.integer(0, 1)
        if "scheduler-looks-as-far" in frame.breaks and item.is_embed and choose.chance(85):
            # A chunk ends before the item's first row: the drafter reads it, nobody looked for it.
            offset = frame.chunk * choose.integer(1, 3) - start - item.is_embed.index(True)
            if offset >= end:
                return offset
        if "chunk edges" in frame.traits and choose.chance(60):
            edge = frame.chunk * choose.integer(1, 3) - start
            edge += choose.integer(-frame.reach, frame.reach)
            offset = edge - item.length if choose.chance(50) else edge
            if end <= offset <= end + frame.chunk + frame.reach:
                return offset
        return end + choose.integer(0, max(2 * frame.reach, frame.scale.most_text))

    def _contents(self, features: Sequence[Feature]) -> tuple[str, ...]:
        if "hash-is-content" not in self._frame.breaks or not self._choose.chance(50):
            return ()
        return tuple(f"content {self._choose.integer(0, 1)}" for _ in features)


def _name(number: int) -> str:
    """``A`` to ``Z``, then ``A1``..."""
    letter = chr(ord("A") + number % 26)
    return letter if number < 26 else f"{letter}{number // 26}"


_NEEDED_TO_BREAK: dict[Assumption, frozenset[Trait]] = {
    "hash-is-content": frozenset({"shared hashes"}),
    "hash-has-one-row-count": frozenset({"shared hashes"}),
    # An item that starts in the chunk, and its first row behind it.
    "scheduler-looks-as-far": frozenset({"drafter", "masks", "chunk edges"}),
}
"""Traits without which a scenario hardly shows what breaks."""


def build_scenario(
    choose: Choose,
    scale: Scale = SMALL,
    breaks: frozenset[Assumption] = frozenset(),
    wanted: frozenset[Trait] = frozenset(),
) -> Scenario:
    """A legal scenario.

    Args:
        choose: where the choices come from.
        scale: how large things get.
        breaks: assumptions that the scenario may break.
        wanted: traits that it must have.
    """
    needed = wanted | frozenset(
        trait for assumption in breaks for trait in _NEEDED_TO_BREAK[assumption]
    )
    frame = draw_frame(choose, draw_traits(choose, needed), scale, breaks)
    prompts = Prompts(choose, frame)
    most = scale.many_requests if "many requests" in frame.traits else (1, scale.few_requests)
    count = choose.integer(*most)
    if "crowds" in frame.traits:
        count = max(3, count)
    burst = choose.integer(1, scale.most_passes) if "bursts" in frame.traits else None
    requests = tuple(
        _draw_request(choose, frame, prompts, index, count, burst) for index in range(count)
    )
    resets: tuple[int, ...] = ()
    if "resets" in frame.traits:
        number = choose.integer(1, 2)
        resets = tuple(choose.integer(1, 2 * scale.most_passes) for _ in range(number))
    return Scenario(_draw_config(choose, frame, requests), requests, resets)


def _draw_request(
    choose: Choose, frame: Frame, prompts: Prompts, index: int, count: int, burst: int | None
) -> ScenarioRequest:
    scale, traits = frame.scale, frame.traits
    usurpers = "usurpers" in traits
    arrival = 0
    if usurpers:
        arrival = index + choose.integer(0, 1)
    elif "late arrivals" in traits and index:
        arrival = choose.integer(0, scale.most_passes) if burst is None else burst
    turn = prompts.turn(0, may_be_text=index > 0)
    max_tokens = choose.integer(1, scale.most_generated)
    continuations: tuple[Continuation, ...] = ()
    if "streaming" in traits and choose.chance(70):
        continuations = _draw_continuations(choose, frame, prompts, arrival, turn, max_tokens)
    hits = _draw_prefix_hits(choose, frame, turn)
    generated = max_tokens + sum(turn.max_tokens for turn in continuations)
    priority = 0
    if "priority" in traits:
        priority = count - index if usurpers else choose.integer(0, 2)
    close = None
    if "late closes" in traits and choose.chance(60):
        last = continuations[-1].arrival if continuations else arrival
        close = last + choose.integer(0, 2 * scale.most_passes)
    return ScenarioRequest(
        num_prompt_tokens=turn.num_prompt_tokens,
        features=turn.features,
        arrival=arrival,
        max_tokens=max_tokens,
        priority=priority,
        abort=_draw_abort(choose, frame, arrival, continuations),
        contents=turn.contents,
        continuations=continuations,
        accepted_drafts=_draw_accepted(choose, frame, generated),
        prefix_hits=hits,
        failed_loads=_draw_failed_loads(choose, frame, turn, arrival, hits),
        close=close,
    )


def _draw_continuations(
    choose: Choose, frame: Frame, prompts: Prompts, arrival: int, first: Turn, max_tokens: int
) -> tuple[Continuation, ...]:
    drawn: list[Continuation] = []
    base = first.num_prompt_tokens + max_tokens - 1
    for _ in range(choose.integer(1, 2)):
        soonest = 3 if "aborts while paused" in frame.traits else 0
        arrival += soonest + choose.integer(0, frame.scale.most_passes)
        turn = prompts.turn(base, may_be_text=True)
        max_tokens = choose.integer(1, frame.scale.most_generated)
        drawn.append(
            Continuation(arrival, turn.num_prompt_tokens, turn.features, max_tokens, turn.contents)
        )
        base += turn.num_prompt_tokens + max_tokens - 1
    return tuple(drawn)


def _draw_abort(
    choose: Choose, frame: Frame, arrival: int, continuations: Sequence[Continuation]
) -> int | None:
    if "aborts while paused" in frame.traits and continuations:
        # The pass before its last input comes: a short turn is over by then.
        return max(arrival, continuations[-1].arrival - choose.integer(0, 1))
    if "aborts" not in frame.traits or not choose.chance(50):
        return None
    return arrival + choose.integer(0, 2 * frame.scale.most_passes)


def _draw_accepted(choose: Choose, frame: Frame, generated: int) -> tuple[int, ...]:
    """Accepted drafts of the first steps; few, since the later ones accept none."""
    if not frame.num_drafts:
        return ()
    steps = choose.integer(0, min(generated, frame.scale.most_generated))
    return tuple(choose.integer(0, frame.num_drafts) for _ in range(steps))


def _draw_prefix_hits(choose: Choose, frame: Frame, turn: Turn) -> tuple[int, ...]:
    """Hits that end in an item, or within one token of one of its ends; whole blocks only."""
    if "prefix hits" not in frame.traits:
        return ()
    hits = []
    for _ in range(choose.integer("failing prefixes" in frame.traits, 2)):
        if turn.features and choose.chance(70):
            feature = choose.pick(turn.features)
            hit = feature.offset + choose.integer(-1, feature.length + 1)
        else:
            hit = choose.integer(0, turn.num_prompt_tokens - 1)
        hit = min(max(0, hit), turn.num_prompt_tokens - 1)
        hits.append(hit // frame.block_size * frame.block_size)
    return tuple(hits)


def _draw_failed_loads(
    choose: Choose, frame: Frame, turn: Turn, arrival: int, hits: Sequence[int]
) -> tuple[FailedLoad, ...]:
    """Falls of progress, most of them into an item."""
    if "failed loads" not in frame.traits:
        return ()
    loads = []
    if "failing prefixes" in frame.traits and hits and hits[0] and choose.chance(80):
        # The pass that loads a prefix is the first one of the request, at once or after a wait.
        left = min(_inside_an_item(choose, turn), hits[0] - 1)
        loads.append(FailedLoad(arrival + choose.pick((0, 0, 1, 2)), left))
    if choose.chance(60):
        for _ in range(choose.integer(1, 2)):
            at = choose.integer(0, 2 * frame.scale.most_passes)
            if turn.features and choose.chance(70):
                left = _inside_an_item(choose, turn)
            else:
                left = choose.integer(0, turn.num_prompt_tokens)
            loads.append(FailedLoad(at, left))
    return tuple(loads)


def _inside_an_item(choose: Choose, turn: Turn) -> int:
    """A number of tokens that ends in an item, or where one starts."""
    if not turn.features:
        return choose.integer(0, turn.num_prompt_tokens - 1)
    feature = choose.pick(turn.features)
    return feature.offset + choose.integer(0, feature.length - 1)


def _draw_config(choose: Choose, frame: Frame, requests: Sequence[ScenarioRequest]) -> EngineConfig:
    """Sizes that hold each item and each request alone, and as little more as the traits want."""
    traits = frame.traits
    rows = _rows([f for request in requests for f in request.all_features()])
    largest, everything = max(rows, default=1), max(1, sum(rows))
    cache_size, encoder_budget = _draw_sizes(choose, frame, largest, everything)
    alone = [-(-(r.most_tokens + frame.num_drafts) // frame.block_size) for r in requests]
    in_flight = (frame.async_depth + 1) * (1 + frame.num_drafts)
    num_kv_blocks = sum(blocks + -(-in_flight // frame.block_size) for blocks in alone)
    if traits & {"usurpers", "last chunks"}:
        num_kv_blocks = max(alone) + choose.integer(0, 2)
    elif "few KV blocks" in traits:
        num_kv_blocks = _between(choose, max(alone), sum(alone))
    few_sequences = "few sequences" in traits
    return EngineConfig(
        max_num_batched_tokens=frame.token_budget,
        encoder_compute_budget=encoder_budget,
        encoder_cache_size=cache_size,
        num_kv_blocks=num_kv_blocks,
        block_size=frame.block_size,
        max_num_seqs=choose.integer(1, 2) if few_sequences else max(8, len(requests)),
        scheduler_lookahead=frame.scheduler_lookahead,
        gather_lookahead=frame.gather_lookahead,
        num_speculative_tokens=frame.num_drafts,
        async_depth=frame.async_depth,
        whole_items="whole items" in traits,
        long_prefill_token_threshold=frame.threshold,
        block_alignment=frame.alignment,
        policy="priority" if "priority" in traits else "fcfs",
        prefix_caching="prefix hits" in traits,
        is_encoder_decoder="encoder-decoder" in traits,
    )


def _draw_sizes(choose: Choose, frame: Frame, largest: int, everything: int) -> tuple[int, int]:
    """Rows of the encoder cache and of the encoder budget, as a vLLM derives them or any."""
    traits = frame.traits
    if "any sizes" not in traits:
        least = max(frame.token_budget, largest)
        is_tight = "tight cache" in traits or "tight encoder budget" in traits
        size = _between(choose, least, everything) if is_tight else max(least, everything)
        return size, size
    cache_size = encoder_budget = everything
    if "tight cache" in traits:
        cache_size = _between(choose, largest, everything)
    if "tight encoder budget" in traits:
        encoder_budget = _between(choose, largest, everything)
    return cache_size, encoder_budget


def _rows(features: Sequence[Feature]) -> list[int]:
    """Rows of each identifier; the most where a broken assumption gives it several."""
    rows: dict[str, int] = {}
    for feature in features:
        rows[feature.identifier] = max(rows.get(feature.identifier, 0), feature.num_rows)
    return list(rows.values())


def _between(choose: Choose, least: int, most: int) -> int:
    """From ``least`` to ``most``, and the ends and their neighbours more often."""
    most = max(least, most)
    if choose.chance(50):
        return min(choose.pick((least, least + 1, max(least, most - 1))), most)
    return choose.integer(least, most)
