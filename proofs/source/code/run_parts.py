"""What surrounds a release's scheduler in a run of its source: request, KV blocks, configuration.

Everything here answers what the scheduler of a lone request asks of it, and stops the run as "not
modelled" when it is asked for more.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, NoReturn

from proofs.source.code.release import ReleaseSource, StandIn
from proofs.symbolic.integers import AnyInt, NotModelled

KV_MODULE = "vllm.v1.core.kv_cache_manager"
TOKEN = 1
"""Every token has this id: what is scheduled does not depend on it."""


class Known(SimpleNamespace):
    """An object of which only the given attributes are known."""

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse anything else."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotModelled(f"the code asks a stand-in for {name}, which is not modelled")


class Tokens:
    """The tokens of a request: only how many were appended is known."""

    def __init__(self) -> None:
        self.num_appended = 0

    def append(self, _token: int) -> None:
        """One more."""
        self.num_appended += 1

    def copy(self) -> Tokens:
        """A copy of which nothing is read either."""
        return self

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse anything else."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotModelled(f"the code asks a request's tokens for {name}, which is not modelled")


class RunRequest(StandIn):
    """A request whose prompt has a symbolic number of tokens; its methods are the release's."""

    @property
    def num_tokens(self) -> AnyInt:
        """Prompt and generated tokens."""
        count: AnyInt = self.num_prompt_tokens + self._all_token_ids.num_appended
        return count

    @property
    def num_tokens_with_spec(self) -> AnyInt:
        """Prompt, generated tokens and drafts."""
        return self.num_tokens + len(self.spec_token_ids)


class KVBlocks:
    """A KV manager that grants everything: blocks of one token, and no prefix is ever found.

    Args:
        release: for what its manager returns.
        granted: told of the request's tokens that each call makes room for.
    """

    def __init__(self, release: ReleaseSource, granted: Callable[[AnyInt], None]) -> None:
        self._num_counts = _num_hit_counts(release)
        self._granted = granted
        self.num_blocks: AnyInt = 0
        self.empty_kv_cache_blocks = _BLOCKS

    def get_computed_blocks(self, *_: Any, **__: Any) -> tuple[Any, ...]:
        """Nothing is found computed."""
        return (_BLOCKS, *[0] * self._num_counts)

    def allocate_slots(
        self,
        request: Any,
        num_new_tokens: AnyInt,
        num_new_computed_tokens: AnyInt = 0,
        **_: Any,
    ) -> Any:
        """Room for everything."""
        self.num_blocks = request.num_computed_tokens + num_new_computed_tokens + num_new_tokens
        self._granted(self.num_blocks)
        return _BLOCKS

    def get_blocks(self, _request_id: str) -> Any:
        """The request's blocks."""
        return _BLOCKS

    def free(self, _request: Any) -> None:
        """Take the blocks back."""
        self.num_blocks = 0

    def take_kv_cache_block_copies(self) -> tuple[list[Any], list[Any]]:
        """No block is shared, so none is copied."""
        return [], []

    def get_num_common_prefix_blocks(self, _request_id: str) -> list[int]:
        """Nothing is shared."""
        return [0]

    def take_boundary_state_offloads(self) -> dict[str, Any]:
        """No state is handed on."""
        return {}

    def take_new_block_ids(self) -> list[int]:
        """Nothing needs to be cleared."""
        return []

    def _nothing(self, *_: Any, **__: Any) -> None:
        """Notices of which nothing follows."""

    new_step_starts = cache_blocks = record_prefix_cache_stats = take_events = _nothing
    estimate_cached_tokens = _nothing

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse anything else."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotModelled(f"the KV manager is asked for {name}, which is not modelled")


_BLOCKS = Known(get_block_ids=lambda **_: ([],), blocks=())


def _num_hit_counts(release: ReleaseSource) -> int:
    """How many counts come with the blocks that a prefix hit returns."""
    node = release.module(KV_MODULE).definition("KVCacheManager", "get_computed_blocks")
    match None if node is None else node.returns:
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=[_, *counts])):
            if all(isinstance(count, ast.Name) and count.id == "int" for count in counts):
                return len(counts)
    raise NotModelled("what a prefix hit returns is not recognised")


class Record(SimpleNamespace):
    """An output of the scheduler: what it was made with, and what a dataclass leaves at rest."""

    def __getattr__(self, name: str) -> Any:
        """Its value at rest.

        Raises:
            NotModelled: none is known.
        """
        if name in _AT_REST:
            return _AT_REST[name]
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotModelled(f"an output is asked for {name}, which is not modelled")


_AT_REST: dict[str, Any] = {
    "has_structured_output_requests": False,
    "num_invalid_spec_tokens": None,
}


class NewRequest(Record):
    """What is sent of a request that starts."""

    @classmethod
    def from_request(cls, request: Any, *_: Any, **__: Any) -> NewRequest:
        """Of the given request."""
        return cls(
            req_id=request.request_id,
            mm_features=request.mm_features,
            num_computed_tokens=request.num_computed_tokens,
        )


class NoLog:
    """A logger that tells nobody."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


class NoStructuredOutput:
    """No request of a run follows a grammar."""

    def should_advance(self, *_: Any) -> bool:
        """No grammar advances."""
        return False

    def accept_tokens(self, *_: Any) -> bool:
        """Every token is accepted."""
        return True

    def validate_tokens(self, _request: Any, token_ids: list[int]) -> list[int]:
        """Every draft is valid."""
        return token_ids


RUN_OVERRIDES: dict[str, object] = {
    "logger": NoLog(),
    "record_function_or_nullcontext": lambda _name: nullcontext(),
    "SchedulerOutput": Record,
    "CachedRequestData": Record,
    "NewRequestData": NewRequest,
    "EngineCoreOutput": Record,
    "EngineCoreOutputs": Record,
}
"""What is replaced in a run besides what is replaced everywhere: records of what is put out."""
