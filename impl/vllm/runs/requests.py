"""Real requests, features and streaming inputs of a release, built from a scenario."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from impl.vllm.functions.objects import Builder, require
from impl.vllm.launch.load import Loaded
from spec.errors import described
from spec.functions.observations import request_name
from spec.record.feature import Feature
from spec.record.scenario import Continuation, Scenario, ScenarioRequest

TOKEN = 1
"""Every token has this id: what is read where does not depend on it."""

BEGIN_TURN = "_update_request_as_session"
"""The scheduler's method that lets the next turn of a streaming request begin."""


class RequestBuilder:
    """Makes requests of the loaded release.

    Args:
        builder: makes its features.
    """

    def __init__(self, loaded: Loaded, builder: Builder) -> None:
        self._builder = builder
        self._request: Any = require(loaded, "v1.request", "Request")
        self._sampling: Any = require(loaded, "sampling_params", "SamplingParams")
        self._data: Any = require(loaded, "multimodal.inputs", "MultiModalKwargsItem")
        parameters = inspect.signature(self._request.__init__).parameters
        self._extra = {"eos_token_id": None} if "eos_token_id" in parameters else {}
        self._streams = "resumable" in parameters
        update: Any = loaded.find("v1.request", "StreamingUpdate")
        self._update: Any = update
        scheduler = require(loaded, "v1.core.sched.scheduler", "Scheduler")
        self._streams &= update is not None and hasattr(scheduler, BEGIN_TURN)
        self._keeps_limit: str | None = None

    def missing(self, scenario: Scenario, scheduler: Callable[[], Any]) -> str | None:
        """Why the release cannot be given the requests; ``None`` when it can.

        Args:
            scheduler: makes a scheduler of the release.
        """
        if not self._streams and any(request.streams for request in scenario.requests):
            return "its requests cannot be continued (streaming input)"
        for request in scenario.requests:
            limits = {request.max_tokens, *(turn.max_tokens for turn in request.continuations)}
            if len(limits) > 1:
                if self._keeps_limit is None:
                    self._keeps_limit = self._ask_for_limit(scheduler())
                return self._keeps_limit or None
        return None

    def _ask_for_limit(self, scheduler: Any) -> str:
        """Why a next turn's limit is not kept, though it brings its own; empty if it is.

        Releases up to 0.29 keep that of the first turn.
        """
        session = self._make(0, 1, (), 1, 0, 0, resumable=True)
        following = self._make(0, 1, (), 2, 0, 1, resumable=True)
        try:
            getattr(scheduler, BEGIN_TURN)(session, self._update.from_request(following))
        except Exception as error:
            what = "whether its streaming requests renew max_tokens"
            return f"{what} cannot be asked: {described(error)}"
        if session.max_tokens == following.max_tokens:
            return ""
        return "its streaming requests keep the first turn's max_tokens in all later ones"

    def first_turn(self, index: int, source: ScenarioRequest, arrival: int) -> Any:
        """The request as it arrives.

        Args:
            index: its number in the scenario.
            source: what the scenario says of it.
            arrival: its place among all arrivals; stands for the time of its arrival.
        """
        return self._make(
            index,
            source.num_prompt_tokens,
            source.features,
            source.max_tokens,
            source.priority,
            arrival,
            resumable=source.streams,
        )

    def next_turn(
        self, index: int, source: ScenarioRequest, turn: Continuation, arrival: int
    ) -> Any:
        """The next input of a streaming request."""
        return self._make(
            index,
            turn.num_prompt_tokens,
            turn.features,
            turn.max_tokens,
            source.priority,
            arrival,
            resumable=True,
        )

    def end_of_stream(self, index: int, arrival: int) -> Any:
        """Says that no further input of a streaming request follows."""
        return self._make(index, 1, (), 1, 0, arrival, resumable=False)

    def _make(
        self,
        index: int,
        num_prompt_tokens: int,
        features: Sequence[Feature],
        max_tokens: int,
        priority: int,
        arrival: int,
        *,
        resumable: bool,
    ) -> Any:
        built = self._builder.features(features)
        for feature in built:
            # Only whether there is raw data matters; a runner does not encode without.
            feature.data = self._data({})
        more = {"resumable": resumable} if self._streams else {}
        return self._request(
            request_id=request_name(index),
            prompt_token_ids=[TOKEN] * num_prompt_tokens,
            sampling_params=self._sampling(max_tokens=max_tokens, ignore_eos=True),
            pooling_params=None,
            mm_features=built,
            priority=priority,
            arrival_time=float(arrival),
            **more,
            **self._extra,
        )
