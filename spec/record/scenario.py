"""A scenario: everything about a run that is chosen from outside.

Frozen data; :mod:`spec.record.document` reads and writes it as JSON. Passes are counted from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spec.errors import InputError
from spec.record.config import EngineConfig
from spec.record.feature import Feature, require_sorted_and_disjoint, rows_by_identifier

_STRICT = {"extra": "forbid", "strict": True}


@dataclass(frozen=True)
class Continuation:
    """The next input of a streaming request.

    The last token sampled before it is discarded; the others stay in the prompt, and the new tokens
    follow them. It waits while the turn before it runs.

    Attributes:
        arrival: pass before which it arrives.
        num_prompt_tokens: new tokens, at least one.
        features: features of the new tokens, offsets counted from the first of them.
        max_tokens: tokens to generate in this turn.
        contents: content of each feature; empty where the identifier stands for it.
    """

    arrival: int
    num_prompt_tokens: int
    features: tuple[Feature, ...] = ()
    max_tokens: int = 1
    contents: tuple[str, ...] = ()

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class FailedLoad:
    """KV that turns out not to be there when a pass is updated: progress falls.

    Every engine reports KV that it loaded in that very pass: the prefix that the request found as
    it started. KV of earlier passes is checked by some stores only, so that an engine may report
    all of its failures or none.

    Attributes:
        at: the pass whose update reports it; nothing happens if the request did not run in it, or
            if its output no longer counts.
        num_computed_tokens: what is left of the request's progress (tokens); nothing happens if
            it is already lower.
    """

    at: int
    num_computed_tokens: int

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class ScenarioRequest:
    """One request and what the world answers it.

    Attributes:
        num_prompt_tokens: length of the prompt, features included.
        features: its features, sorted and disjoint. Of an encoder-decoder model at most one, at
            offset 0; its length does not count as prompt tokens.
        arrival: pass before which it arrives.
        max_tokens: tokens to generate.
        priority: lower runs first under the priority policy.
        abort: pass before which it is aborted.
        contents: content of each feature; empty where the identifier stands for it. Another
            content under a known identifier breaks the assumption ``hash-is-content``.
        continuations: inputs that follow; a request with any is a streaming request, which pauses
            between turns and is finished with the last.
        accepted_drafts: how many drafts the target accepts in each step that verifies some; 0 in
            all later ones.
        prefix_hits: tokens found computed each time the request starts: at first, when it has its
            prompt, and after each preemption, when blocks that it generated may be found too; 0 in
            all later ones. One less than the request has then is the most that it finds.
        failed_loads: falls of progress.
        close: pass before which the client closes a streaming request that it leaves open after its
            last input: it pauses once more, if that turn is over by then. ``None`` closes it with
            its last input. A request with it is a streaming one also without continuations.
    """

    num_prompt_tokens: int
    features: tuple[Feature, ...] = ()
    arrival: int = 0
    max_tokens: int = 1
    priority: int = 0
    abort: int | None = None
    contents: tuple[str, ...] = ()
    continuations: tuple[Continuation, ...] = ()
    accepted_drafts: tuple[int, ...] = ()
    prefix_hits: tuple[int, ...] = ()
    failed_loads: tuple[FailedLoad, ...] = ()
    close: int | None = None

    __pydantic_config__ = _STRICT

    @property
    def streams(self) -> bool:
        """Whether it is a streaming request, whose client may send further input."""
        return bool(self.continuations) or self.close is not None

    @property
    def most_tokens(self) -> int:
        """Tokens of the whole request, all turns and everything generated included."""
        turns = sum(turn.num_prompt_tokens + turn.max_tokens for turn in self.continuations)
        return self.num_prompt_tokens + self.max_tokens + turns

    def all_features(self) -> tuple[Feature, ...]:
        """Features of all turns; those of continuations with offsets within their turn."""
        return (*self.features, *(f for turn in self.continuations for f in turn.features))

    def content(self, feature: int) -> str:
        """Content of a feature, counted over all turns."""
        for features, contents in self._turns():
            if feature < len(features):
                return contents[feature] if contents else features[feature].identifier
            feature -= len(features)
        raise IndexError(feature)

    def _turns(self) -> list[tuple[tuple[Feature, ...], tuple[str, ...]]]:
        more = [(turn.features, turn.contents) for turn in self.continuations]
        return [(self.features, self.contents), *more]


@dataclass(frozen=True)
class Scenario:
    """A configuration, requests, and resets of the encoder cache.

    Attributes:
        config: the engine's settings.
        requests: the requests; those that arrive before the same pass arrive in this order.
        resets: passes before which the encoder cache is reset, on the book and on the worker.
    """

    config: EngineConfig
    requests: tuple[ScenarioRequest, ...]
    resets: tuple[int, ...] = ()
    kind: Literal["scenario"] = "scenario"

    __pydantic_config__ = _STRICT

    @property
    def last_event(self) -> int:
        """The last pass before which, or at whose update, something comes from outside; or -1."""
        events = [*self.resets]
        for request in self.requests:
            events += [request.arrival, *(turn.arrival for turn in request.continuations)]
            events += [load.at for load in request.failed_loads]
            events += [at for at in (request.close, request.abort) if at is not None]
        return max(events, default=-1)

    @property
    def content_is_hashed(self) -> bool:
        """Whether every identifier stands for one content (assumption ``hash-is-content``)."""
        seen: dict[str, tuple[str, int]] = {}
        for request in self.requests:
            for index, feature in enumerate(request.all_features()):
                wanted = (request.content(index), feature.num_rows)
                if seen.setdefault(feature.identifier, wanted) != wanted:
                    return False
        return True

    @property
    def broken_assumptions(self) -> tuple[str, ...]:
        """Ids of the assumptions in :mod:`spec.claims.assumptions` that the scenario breaks."""
        broken = {
            "hash-is-content": not self.content_is_hashed,
            "scheduler-looks-as-far": self.config.scheduler_lookahead
            < self.config.gather_lookahead,
        }
        return tuple(name for name, is_broken in broken.items() if is_broken)

    def validate(self) -> None:
        """Check that an engine could be given the scenario, and that its settings are legal.

        Legal means that a stall is not the configuration's own fault: the encoder budget and the
        cache hold each item; the KV blocks hold one whole request with its drafts; with whole items
        the token budget holds each.

        Raises:
            InputError: what is wrong, and where.
        """
        self.config.validate()
        if not self.requests:
            raise InputError("scenario: it has no request")
        if any(reset < 0 for reset in self.resets):
            raise InputError("scenario: passes are counted from 0; a reset is before that")
        for index, request in enumerate(self.requests):
            _validate_request(request, self.config, f"scenario, request {index}")
        if self.content_is_hashed:
            rows_by_identifier([f for r in self.requests for f in r.all_features()])


def _validate_request(request: ScenarioRequest, config: EngineConfig, where: str) -> None:
    turns = [
        (request.arrival, request.num_prompt_tokens, request.features, request.contents),
        *((t.arrival, t.num_prompt_tokens, t.features, t.contents) for t in request.continuations),
    ]
    for turn, (arrival, num_prompt_tokens, features, contents) in enumerate(turns):
        place = f"{where}, turn {turn}"
        if arrival < request.arrival:
            raise InputError(f"{place}: it arrives before the request does")
        if num_prompt_tokens < 1:
            raise InputError(f"{place}: {num_prompt_tokens} prompt tokens; give at least one")
        if contents and len(contents) != len(features):
            raise InputError(f"{place}: {len(contents)} contents for {len(features)} features")
        require_sorted_and_disjoint(features, place)
        for feature in features:
            _validate_feature(feature, num_prompt_tokens, config, place)
    if min([request.max_tokens, *(turn.max_tokens for turn in request.continuations)]) < 1:
        raise InputError(f"{where}: max_tokens must be at least 1")
    if request.arrival < 0 or (request.abort is not None and request.abort < request.arrival):
        raise InputError(f"{where}: it must arrive at pass 0 or later, and be aborted after that")
    arrivals = [turn.arrival for turn in request.continuations]
    if arrivals != sorted(arrivals):
        raise InputError(f"{where}: continuations must be sorted by arrival")
    if request.close is not None and request.close < max([request.arrival, *arrivals]):
        raise InputError(f"{where}: it is closed at {request.close}, before its last input comes")
    most_blocks = -(-(request.most_tokens + config.num_speculative_tokens) // config.block_size)
    if most_blocks > config.num_kv_blocks:
        raise InputError(
            f"{where}: alone it needs {most_blocks} KV blocks, and there are "
            f"{config.num_kv_blocks}; an engine takes no prompt of more tokens than they hold, and "
            "ends any other request there: generate fewer"
        )
    _validate_answers(request, config, where)


def _validate_feature(
    feature: Feature, num_prompt_tokens: int, config: EngineConfig, where: str
) -> None:
    name = feature.describe()
    if feature.length < 1:
        raise InputError(f"{where}: {name} has no token")
    if config.is_encoder_decoder:
        if feature.offset or feature.is_embed is not None:
            raise InputError(f"{where}: {name}: an encoder-decoder item is dense and at offset 0")
    elif feature.end > num_prompt_tokens:
        raise InputError(f"{where}: {name} ends past the {num_prompt_tokens} prompt tokens")
    for limit in ("encoder_compute_budget", "encoder_cache_size"):
        if feature.num_rows > getattr(config, limit):
            raise InputError(
                f"{where}: {name} has {feature.num_rows} rows but {limit} is "
                f"{getattr(config, limit)}; the item could never be encoded"
            )
    if config.whole_items and feature.length > config.max_num_batched_tokens:
        raise InputError(
            f"{where}: {name} is longer than the token budget of {config.max_num_batched_tokens}, "
            "and items are not chunked"
        )


def _validate_answers(request: ScenarioRequest, config: EngineConfig, where: str) -> None:
    if request.prefix_hits and not config.prefix_caching:
        raise InputError(f"{where}: prefix hits without prefix_caching")
    for start, hit in enumerate(request.prefix_hits):
        most = (request.most_tokens if start else request.num_prompt_tokens) - 1
        if not 0 <= hit <= most:
            raise InputError(
                f"{where}: a prefix hit of {hit} tokens; at most {most} can be found, since the "
                "last token is always computed"
            )
    if any(accepted < 0 for accepted in request.accepted_drafts):
        raise InputError(f"{where}: accepted drafts cannot be negative")
    if any(load.at < 0 or load.num_computed_tokens < 0 for load in request.failed_loads):
        raise InputError(f"{where}: a failed load needs a pass and tokens of 0 or more")
    if config.is_encoder_decoder and (
        len(request.features) > 1 or request.streams or request.failed_loads or request.prefix_hits
    ):
        raise InputError(
            f"{where}: a request of an encoder-decoder model has at most one item, and no "
            "continuation, prefix hit or failed load here"
        )
