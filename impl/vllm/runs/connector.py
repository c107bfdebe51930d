"""A stand-in for a store of KV outside the engine: it answers what a scenario says.

vLLM's own factory imports the class by name and makes it from the configuration, so that everything
that a scheduler derives from having such a store is set as in a real engine. The class is only
importable once a release is loaded.
"""

from __future__ import annotations

from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1 import base

from impl.vllm.runs.connector_hooks import Hooks


class WorldConnector(base.KVConnectorBase_V1):  # type: ignore[misc]
    """Prefixes are loaded within the step that starts a request, none is stored.

    Attributes:
        hooks: what the world answers; set once the scheduler is made.
    """

    hooks: Hooks

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int
    ) -> tuple[int, bool]:
        """Tokens beyond those computed that can be loaded, within the step itself."""
        return max(self.hooks.hit(request) - num_computed_tokens, 0), False

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        """Note that the request starts."""
        self.hooks.started(request, num_external_tokens)

    def build_connector_meta(self, scheduler_output: Any) -> Any:
        """There is nothing to tell a worker."""
        return base.KVConnectorMetadata()

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Only a worker loads."""

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Only a worker loads."""

    def save_kv_layer(
        self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any
    ) -> None:
        """Nothing is stored."""

    def wait_for_save(self) -> None:
        """Nothing is stored."""
