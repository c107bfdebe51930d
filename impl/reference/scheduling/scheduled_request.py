"""A request as the scheduler holds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from impl.reference.scheduling.request import MultiModalFeature, Request
from spec.record.steps import Status


@dataclass(eq=False)
class Turn:
    """One input of a request: new tokens, their features, and how many tokens to generate."""

    num_prompt_tokens: int
    mm_features: Sequence[MultiModalFeature]
    max_tokens: int


@dataclass(eq=False)
class SchedulerRequest(Request):
    """A request with its progress and what it holds (tokens, unless said otherwise).

    Attributes:
        index: number of the request, in order of the scenario.
        priority: lower runs first under the priority policy.
        arrival: place among all arrivals.
        turns_left: inputs of a streaming request that have not begun.
        is_open: whether its client has not yet said that no input follows those.
        turns_arrived: those among them that wait for the turn before them to end.
        prefix_hits: tokens that it finds computed each time it starts from nothing.
        feature_ends: the position after each feature.
        num_tokens: prompt and generated tokens.
        limit: ``num_tokens`` at which the turn ends.
        num_draft_tokens: drafts that wait to be scheduled.
        num_in_flight_tokens: tokens of passes that are not yet updated.
        num_blocks: KV blocks held.
        epoch: grows whenever outputs in flight become stale.
        drop_before: stale outputs of earlier epochs are dropped; later ones are still delivered.
        num_starts: how often it came from the waiting queue at no progress.
        num_verifications: steps updated so far that verified drafts.
    """

    index: int = 0
    priority: int = 0
    arrival: int = 0
    turns_left: int = 0
    is_open: bool = False
    turns_arrived: list[Turn] = field(default_factory=list)
    prefix_hits: Sequence[int] = ()
    feature_ends: list[int] = field(default_factory=list)
    num_tokens: int = 0
    limit: int = 0
    num_draft_tokens: int = 0
    num_in_flight_tokens: int = 0
    num_blocks: int = 0
    status: Status = "waiting"
    epoch: int = 0
    drop_before: int = 0
    num_starts: int = 0
    num_verifications: int = 0

    def begin_turn(self, turn: Turn) -> None:
        """Append a turn's tokens, which take the place of the last sampled one."""
        base = max(self.num_tokens - 1, 0)
        moved = [feature.moved_by(base) for feature in turn.mm_features]
        self.mm_features = [*self.mm_features, *moved]
        self.feature_ends = [feature.mm_position.end for feature in self.mm_features]
        self.num_tokens = base + turn.num_prompt_tokens
        self.limit = self.num_tokens + turn.max_tokens

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it will ever run again."""
        return self.status in ("finished", "rejected")

    @property
    def awaits_stale_output(self) -> bool:
        """Whether outputs of before a preemption will still be delivered.

        Resuming earlier could sample a position again that such an output delivers.
        """
        return self.num_in_flight_tokens > 0 and self.drop_before < self.epoch

    def make_outputs_stale(self, *, drop: bool) -> None:
        """Let outputs in flight no longer count as progress, and drop or still deliver them."""
        self.epoch += 1
        if drop:
            self.drop_before = self.epoch
        self.num_output_placeholders = 0
        self.num_draft_tokens = 0
