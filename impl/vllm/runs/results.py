"""What a runner returns to the scheduler, in the release's own classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from impl.vllm.functions.objects import require
from impl.vllm.launch.load import Loaded
from impl.vllm.runs.requests import TOKEN

_OUTPUTS = "v1.outputs"


class Results:
    """Makes results of the loaded release."""

    def __init__(self, loaded: Loaded) -> None:
        self.statuses: Any = require(loaded, "v1.request", "RequestStatus")
        self._result: Any = require(loaded, _OUTPUTS, "ModelRunnerOutput")
        self._drafts: Any = require(loaded, _OUTPUTS, "DraftTokenIds")
        self._store: Any = require(loaded, _OUTPUTS, "KVConnectorOutput")

    @property
    def aborted(self) -> Any:
        """The status of a request that its client gave up."""
        return self.statuses.FINISHED_ABORTED

    def of_step(
        self, names: Sequence[str], sampled: Sequence[list[int]], invalid_blocks: set[int]
    ) -> Any:
        """The result of one step.

        Args:
            names: requests in the order of the batch.
            sampled: token ids that each emits.
            invalid_blocks: KV blocks whose load failed.
        """
        store = self._store(invalid_block_ids=invalid_blocks) if invalid_blocks else None
        return self._result(
            req_ids=list(names),
            req_id_to_index={name: place for place, name in enumerate(names)},
            sampled_token_ids=list(sampled),
            logprobs=None,
            prompt_logprobs_dict={},
            pooler_output=[],
            kv_connector_output=store,
        )

    def drafts(self, names: Sequence[str], number: int) -> Any:
        """Drafts for each request of a batch."""
        return self._drafts(list(names), [[TOKEN] * number for _ in names])
