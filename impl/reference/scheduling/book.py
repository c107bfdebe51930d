"""What a scheduler asks of a cache manager."""

from __future__ import annotations

from typing import Protocol

from impl.reference.scheduling.request import Request


class RowCountMismatchError(ValueError):
    """A hash is asked for with another number of rows than its entry has."""


class Book(Protocol):
    """What a scheduler asks of either cache manager."""

    @property
    def num_free_slots(self) -> int:
        """Rows of no entry (slots)."""
        ...

    def check_and_update_cache(self, request: Request, input_id: int) -> bool:
        """Take a reference if the output is there; whether it was."""
        ...

    def has_other_rows(self, request: Request, input_id: int) -> bool:
        """Whether there is an entry, of another number of rows than the request's feature has."""
        ...

    def can_allocate(
        self,
        request: Request,
        input_id: int,
        encoder_compute_budget: int,
        num_embeds_to_schedule: int,
    ) -> bool:
        """Make room for the output; whether that was possible."""
        ...

    def allocate(self, request: Request, input_id: int) -> None:
        """Enter the output, with a reference by the request."""
        ...

    def get_cached_input_ids(self, request: Request) -> set[int]:
        """Features for which the request holds a reference."""
        ...

    def free_encoder_input(self, request: Request, input_id: int) -> None:
        """Drop the reference to one feature."""
        ...

    def free(self, request: Request) -> None:
        """Drop all references of a request that finished, was aborted or preempted."""
        ...

    def cancel(self, request: Request, input_id: int) -> None:
        """Take back an output that was entered in this pass and will not be computed."""
        ...

    def get_freed_mm_hashes(self) -> list[str]:
        """End the pass: hashes whose tensors the worker may drop."""
        ...

    def reset(self) -> None:
        """Forget everything."""
        ...
