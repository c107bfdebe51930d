"""What a store of KV asks the world; importable without vLLM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Hooks(NamedTuple):
    """Answers to a scheduler's questions.

    Attributes:
        hit: tokens that a request finds computed if it starts now.
        started: told of each request that got its blocks, and of the tokens loaded for it.
    """

    hit: Callable[[Any], int]
    started: Callable[[Any, int], None]
