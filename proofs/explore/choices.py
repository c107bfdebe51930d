"""What is chosen within a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple, TypeAlias

from spec.model.state import DROPPED, State

Disturbance: TypeAlias = Literal["none", "abort", "reset", "failed load"]


class Choice(NamedTuple):
    """What is chosen in one round.

    Attributes:
        arrivals: requests that arrive before the pass.
        abort: the request that is aborted before it, or -1.
        reset: whether the cache is reset before it.
        accepted: drafts accepted in the update, by request of the batch; empty where none is due.
        load: the request of which a failed load is reported, and the tokens left; or ``None``.
    """

    arrivals: tuple[int, ...] = ()
    abort: int = -1
    reset: bool = False
    accepted: tuple[int, ...] = ()
    load: tuple[int, int] | None = None


@dataclass(frozen=True)
class Choices:
    """What may be chosen within a run.

    Attributes:
        at_start: requests that arrive before pass 0.
        later: those that arrive in this order, each before any pass.
        disturbance: what may happen once.
    """

    at_start: tuple[int, ...]
    later: tuple[int, ...] = ()
    disturbance: Disturbance = "none"


def accepted_choices(state: State) -> Iterator[tuple[int, ...]]:
    """Every number of drafts that each request of the oldest pass in flight may accept."""
    batch = state.in_flight[0]
    return product(
        *[
            range(num_drafts + 1) if standing != DROPPED else (0,)
            for _, _, num_drafts, _, standing in batch
        ]
    )
