"""What was seen in a run: events, passes and updates, in the order in which they happened.

Everything here is raw: ranges, calls with their answers, contents, rows by their identity. Nothing
is a verdict. Requests are named by their index in the scenario; features by their index over all
turns of their request. Positions of a batch are flattened over its requests in batch order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from spec.record.scenario import Scenario

_STRICT = {"extra": "forbid", "strict": True}

Method: TypeAlias = Literal[
    "check_and_update_cache",
    "can_allocate",
    "allocate",
    "free_encoder_input",
    "free",
    "cancel",
    "reset",
    "allocate_slots",
]
"""A method of the book; ``allocate_slots`` is the KV manager's. ``cancel`` takes back an entry that
was allocated in the same pass and will not be encoded."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call to the book or to the KV manager.

    Attributes:
        method: what was called.
        request: the request it was called for; -1 for none.
        feature: index of the feature; -1 for none.
        answer: what it returned: ``None`` where it returns nothing, or where the book rejected the
            feature because its entry has another number of rows.
        budget: rows that the encoder may still compute (``can_allocate``), or tokens to make room
            for (``allocate_slots``).
        chosen: rows chosen before in the same pass and not yet allocated (``can_allocate``).
    """

    method: Method
    request: int = -1
    feature: int = -1
    answer: bool | None = None
    budget: int = 0
    chosen: int = 0

    __pydantic_config__ = _STRICT


Status: TypeAlias = Literal["waiting", "running", "preempted", "paused", "finished", "rejected"]
"""``paused``: a streaming request between two turns. ``finished`` includes aborted."""


@dataclass(frozen=True, slots=True)
class RequestState:
    """A request that has arrived, as the scheduler holds it (all counts in tokens).

    ``num_draft_tokens`` are drafts waiting to be scheduled; ``num_tokens`` is the prompt and what
    was generated; ``num_blocks`` counts KV blocks held.
    """

    request: int
    status: Status
    num_computed_tokens: int
    num_output_placeholders: int
    num_draft_tokens: int
    num_tokens: int
    num_blocks: int

    __pydantic_config__ = _STRICT


@dataclass(frozen=True, slots=True)
class LoopBookState:
    """The book's contents as it reports them.

    Attributes:
        references: each entry with the requests that hold a reference, both in any order. Empty for
            the encoder-decoder book, which keeps no entries.
        freeable: unreferenced entries, the next to be evicted first.
        num_free_slots: rows of no entry.
        num_freeable_slots: rows free now or after evicting all unreferenced entries; ``None`` where
            the book does not keep it.
    """

    references: tuple[tuple[str, tuple[int, ...]], ...]
    freeable: tuple[str, ...]
    num_free_slots: int
    num_freeable_slots: int | None

    __pydantic_config__ = _STRICT


@dataclass(frozen=True, slots=True)
class EngineState:
    """All that the next pass reads, after a step: requests that arrived, queues, the book."""

    requests: tuple[RequestState, ...]
    waiting: tuple[int, ...]
    running: tuple[int, ...]
    book: LoopBookState

    __pydantic_config__ = _STRICT


@dataclass(frozen=True, slots=True)
class ScheduledRequest:
    """One request of a batch (all counts in tokens, at the start of the pass).

    Attributes:
        request: the request.
        num_computed_tokens: progress before the pass.
        num_scheduled_tokens: tokens that run.
        num_draft_tokens: drafts among them.
        num_output_placeholders: tokens counted in advance before the pass.
        prefill_len: prompt and generated tokens known when the pass was scheduled.
        started: whether it came from the waiting queue in this pass.
    """

    request: int
    num_computed_tokens: int
    num_scheduled_tokens: int
    num_draft_tokens: int
    num_output_placeholders: int
    prefill_len: int
    started: bool

    __pydantic_config__ = _STRICT

    @property
    def samples(self) -> bool:
        """Whether the pass reaches the end of the tokens that are known, and so samples one."""
        end = self.num_computed_tokens + self.num_scheduled_tokens
        return end >= self.prefill_len + self.num_output_placeholders


@dataclass(frozen=True, slots=True)
class Encoding:
    """One run of the encoder: its number in the run of the engine, and for whom it ran."""

    number: int
    request: int
    feature: int
    num_rows: int

    __pydantic_config__ = _STRICT


@dataclass(frozen=True, slots=True)
class RowRun:
    """Consecutive rows ``[first_row, first_row + num_rows)`` of one encoding; -1 for unknown rows.

    ``position`` is the flattened position of the first one in the merged embeddings, and -1 in the
    rows as a gather returns them.
    """

    encoding: int
    first_row: int
    num_rows: int
    position: int = -1

    __pydantic_config__ = _STRICT


@dataclass(frozen=True, slots=True)
class Read:
    """What one gather returned, or the error it raised.

    Attributes:
        rows: rows in the order returned; neighbours of one tensor are joined.
        slices: rows of each returned tensor.
        mask: half-open ranges of flattened positions that are true, ascending and apart.
        merged: where rows ended up in the input embeddings; ``None`` where no tensors ran.
        error: the exception, in which case the others are empty.
    """

    rows: tuple[RowRun, ...] = ()
    slices: tuple[int, ...] = ()
    mask: tuple[tuple[int, int], ...] = ()
    merged: tuple[RowRun, ...] | None = None
    error: ErrorSeen | None = None

    __pydantic_config__ = _STRICT


@dataclass(frozen=True, slots=True)
class WorkerSeen:
    """The worker after it applied a pass's output, however far the engine has run on.

    Attributes:
        received: inputs ``(request, feature)`` whose raw data came with this output.
        forgotten: requests whose raw data the worker dropped, before it received the new ones.
        encoded: runs of the encoder in this step.
        contents: tensors held after frees and encodes: identifier and number of its encoding.
        target: the target's gather; for an encoder-decoder model, the items that cross-attention
            reads, each at position -1.
        drafter: the drafter's gather; ``None`` without a drafter.
    """

    received: tuple[tuple[int, int], ...]
    forgotten: tuple[int, ...]
    encoded: tuple[Encoding, ...]
    contents: tuple[tuple[str, int], ...]
    target: Read
    drafter: Read | None

    __pydantic_config__ = _STRICT


Event: TypeAlias = Literal["arrival", "abort", "continuation", "close", "reset"]
"""``close``: the client says that no input follows, where it did not say so with the last one."""


@dataclass(frozen=True, slots=True)
class EventSeen:
    """Something that came from outside before a pass.

    ``continued`` holds ``(request, base)`` when a continuation starts with it: the position at
    which its tokens begin.
    """

    before: int
    event: Event
    request: int
    calls: tuple[Call, ...]
    continued: tuple[tuple[int, int], ...]
    state: EngineState
    error: ErrorSeen | None = None
    kind: Literal["event"] = "event"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True, slots=True)
class PassSeen:
    """One ``schedule()`` and the worker's run of its output.

    Attributes:
        index: number of the pass.
        calls: calls in order, those for preemptions and give-backs included.
        scheduled: the batch, in its order on the worker.
        encoder_inputs: inputs ``(request, feature)`` to encode, in order.
        notices: hashes that the worker is told to drop.
        preempted: requests preempted in the pass.
        rejected: requests refused for good: a hash with another number of rows.
        state: at the return of ``schedule()``.
        worker: ``None`` when scheduling raised.
        error: what scheduling raised.
    """

    index: int
    calls: tuple[Call, ...]
    scheduled: tuple[ScheduledRequest, ...]
    encoder_inputs: tuple[tuple[int, int], ...]
    notices: tuple[str, ...]
    preempted: tuple[int, ...]
    rejected: tuple[int, ...]
    state: EngineState
    worker: WorkerSeen | None
    error: ErrorSeen | None = None
    kind: Literal["pass"] = "pass"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """What the update of a pass did to one of its requests.

    Attributes:
        request: the request.
        num_accepted: drafts accepted (tokens).
        num_emitted: tokens appended to the request.
        dropped: the output was thrown away: the request had ended, was rewound or is in its next
            turn.
        rewound: progress fell to this by a failed KV load (tokens); ``None`` otherwise.
    """

    request: int
    num_accepted: int
    num_emitted: int
    dropped: bool = False
    rewound: int | None = None

    __pydantic_config__ = _STRICT


@dataclass(frozen=True, slots=True)
class UpdateSeen:
    """The update of a pass; ``continued`` as in :class:`EventSeen`."""

    index: int
    outcomes: tuple[RequestOutcome, ...]
    calls: tuple[Call, ...]
    continued: tuple[tuple[int, int], ...]
    state: EngineState
    error: ErrorSeen | None = None
    kind: Literal["update"] = "update"

    __pydantic_config__ = _STRICT


Step: TypeAlias = EventSeen | PassSeen | UpdateSeen

Ending: TypeAlias = Literal["idle", "limit", "stopped", "error"]
"""Why a trace ends: every request ended, the limit of passes, its driver stopped, or an error."""


@dataclass(frozen=True)
class Trace:
    """A run of one scenario on one target.

    Attributes:
        scenario: what was chosen.
        target: name of the target.
        runner: order and gathers of the worker: ``V1`` or ``V2``.
        steps: what was seen.
        ending: why it ends.
    """

    scenario: Scenario
    target: str
    runner: Literal["V1", "V2"]
    steps: tuple[Step, ...]
    ending: Ending
    kind: Literal["trace"] = "trace"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class ErrorSeen:
    """An exception that the target raised."""

    type: str
    message: str

    def names(self, identifier: str) -> bool:
        """Whether the message names the hash as a whole word."""
        pattern = rf"(?<!\w){re.escape(identifier)}(?!\w)"
        return re.search(pattern, self.message) is not None
