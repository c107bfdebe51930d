"""Build a release's own request and feature objects from a case."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

import impl
from impl.harness import calls
from impl.harness.calls import WRAPPER
from impl.target import AdapterError, error_seen
from impl.vllm.launch.load import Loaded
from spec.errors import InputError, described
from spec.record.feature import Feature
from spec.record.steps import ErrorSeen

_MODALITY = "image"


class UnavailableError(Exception):
    """A release lacks a part, or it cannot be called here; the message says why."""


_OURS = str(Path(impl.__file__).parent)


class HalfMade:
    """Mark of an object of the release that was made without its constructor.

    It has only what we know to be read. An attribute that it lacks says that we know too little,
    and nothing of the code under test.
    """


@cache
def half_made(release_class: Any) -> Any:
    """A class whose objects, made by ``__new__``, are known to be half made."""
    return type(release_class.__name__, (release_class, HalfMade), {"__module__": __name__})


def observed(error: Exception) -> ErrorSeen:
    """An exception as an observation of the release.

    Raises:
        AdapterError: it is none. Its innermost frame is our own code, or it is for an attribute
            that one of our stand-ins lacks.
    """
    message = described(error)
    frames = traceback.extract_tb(error.__traceback__)
    # What a wrapper raises itself is about the call that it was given: see impl.harness.calls.
    while len(frames) > 1 and (frames[-1].filename, frames[-1].name) == (calls.__file__, WRAPPER):
        frames.pop()
    if frames and frames[-1].filename.startswith(_OURS):
        where = f"impl{frames[-1].filename.removeprefix(_OURS)}:{frames[-1].lineno}"
        raise AdapterError(f"our own code cannot run this vLLM ({where}): {message}") from error
    if isinstance(error, AttributeError) and isinstance(error.obj, (HalfMade, SimpleNamespace)):
        raise AdapterError(
            f"this vLLM reads {error.name!r} of {type(error.obj).__name__}, which our stand-in for "
            f"it does not have: {message}"
        ) from error
    return error_seen(error)


def require(loaded: Loaded, module: str, attribute: str) -> Any:
    """An attribute of a release's module.

    Raises:
        UnavailableError: the release has no such thing.
    """
    found = loaded.find(module, attribute)
    if found is None:
        raise UnavailableError(f"{loaded.source.name} has no vllm.{module}.{attribute}")
    return found


class Builder:
    """Makes requests and features of the loaded release.

    Raises:
        InputError: the release has no such classes.
    """

    def __init__(self, loaded: Loaded) -> None:
        try:
            self._placeholder: Any = require(loaded, "multimodal.inputs", "PlaceholderRange")
            self._feature: Any = require(loaded, "multimodal.inputs", "MultiModalFeatureSpec")
            self._request: Any = require(loaded, "v1.request", "Request")
            sampling: Any = require(loaded, "sampling_params", "SamplingParams")
        except UnavailableError as error:
            raise InputError(f"{error}; this release is older than what is covered") from None
        # Releases before 0.18 asked for the end-of-sequence token as well.
        parameters = inspect.signature(self._request.__init__).parameters
        self._extra = {"eos_token_id": None} if "eos_token_id" in parameters else {}
        self._sampling = sampling(max_tokens=1)

    def placeholder(
        self, offset: int, length: int, is_embed: Sequence[bool] | None
    ) -> Any:  # vllm.multimodal.inputs.PlaceholderRange
        """Where an item sits; its mask is a Boolean CPU tensor of shape ``(length,)``."""
        mask = None if is_embed is None else torch.tensor(list(is_embed), dtype=torch.bool)
        return self._placeholder(offset=offset, length=length, is_embed=mask)

    def features(self, features: Sequence[Feature]) -> list[Any]:
        """The features of one request."""
        return [
            self._feature(
                data=None,
                modality=_MODALITY,
                identifier=feature.identifier,
                mm_position=self.placeholder(feature.offset, feature.length, feature.is_embed),
            )
            for feature in features
        ]

    def request(self, name: str, features: Sequence[Feature]) -> Any:  # vllm.v1.request.Request
        """A request whose prompt ends where its last feature does."""
        prompt_length = max((feature.end for feature in features), default=0)
        return self._request(
            request_id=name,
            prompt_token_ids=[0] * max(prompt_length, 1),
            sampling_params=self._sampling,
            pooling_params=None,
            mm_features=self.features(features),
            **self._extra,
        )
