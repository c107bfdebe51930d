"""The book: which encoder outputs exist, who needs them, and how much room is left.

It holds no tensors. Sizes are in rows (slots). Method names are the engine's, so that one loop can
drive this book and a release's.
"""

from __future__ import annotations

from impl.reference.scheduling.book import RowCountMismatchError
from impl.reference.scheduling.request import Request


class EncoderCacheManager:
    """The decoder-only book.

    An entry is referenced while some request holds an occurrence of it that it took: a request that
    repeats an item keeps the entry until it lets the last one go (pull request 54284). An entry
    nobody references stays, so that it can be hit again, until its room is needed; the one that has
    been unreferenced longest goes first.

    Args:
        cache_size: capacity (rows).
    """

    def __init__(self, cache_size: int) -> None:
        self.cache_size = cache_size
        self.reset()

    def reset(self) -> None:
        """Forget all entries, references and notices."""
        self.num_free_slots = self.cache_size
        self.num_freeable_slots = self.cache_size
        self._rows: dict[str, int] = {}
        self._holders: dict[str, dict[str, set[int]]] = {}
        self._freeable: dict[str, None] = {}
        self._evicted: list[str] = []

    @property
    def references(self) -> dict[str, tuple[str, ...]]:
        """The requests that hold a reference to each entry."""
        return {identifier: tuple(holders) for identifier, holders in self._holders.items()}

    @property
    def freeable(self) -> tuple[str, ...]:
        """Unreferenced entries, the next to be evicted first."""
        return tuple(self._freeable)

    def check_and_update_cache(self, request: Request, input_id: int) -> bool:
        """Take a reference if there is an entry; whether there was.

        Raises:
            RowCountMismatchError: the entry has another number of rows, so it cannot be the
                content that the request asks for.
        """
        identifier = request.mm_features[input_id].identifier
        if identifier not in self._holders:
            return False
        self._require_same_rows(request, input_id)
        holders = self._holders[identifier]
        if not holders:
            del self._freeable[identifier]
            self.num_freeable_slots -= self._rows[identifier]
        holders.setdefault(request.request_id, set()).add(input_id)
        return True

    def has_other_rows(self, request: Request, input_id: int) -> bool:
        """Whether there is an entry, of another number of rows than the request's feature has."""
        if request.mm_features[input_id].identifier not in self._holders:
            return False
        try:
            self._require_same_rows(request, input_id)
        except RowCountMismatchError:
            return True
        return False

    def _require_same_rows(self, request: Request, input_id: int) -> None:
        identifier = request.mm_features[input_id].identifier
        stored, wanted = self._rows[identifier], request.get_num_encoder_embeds(input_id)
        if wanted != stored:
            raise RowCountMismatchError(
                f"{request.request_id} asks for {identifier!r} with {wanted} rows but its entry "
                f"has {stored}; a hash must stand for one content"
            )

    def can_allocate(
        self,
        request: Request,
        input_id: int,
        encoder_compute_budget: int,
        num_embeds_to_schedule: int,
    ) -> bool:
        """Make room for an output, evicting the oldest unreferenced entries where needed.

        Args:
            request: the request that needs the output.
            input_id: index of the feature.
            encoder_compute_budget: rows that the encoder may still compute in this pass.
            num_embeds_to_schedule: rows chosen before in this pass and not yet allocated.

        Returns:
            Whether there is room. If not, nothing was evicted.
        """
        rows = request.get_num_encoder_embeds(input_id)
        if rows > encoder_compute_budget:
            return False
        wanted = rows + num_embeds_to_schedule
        if wanted > self.num_freeable_slots:
            return False
        while wanted > self.num_free_slots:
            self._evict(self._next_to_evict())
        return True

    def _next_to_evict(self) -> str:
        return next(iter(self._freeable))

    def _evict(self, identifier: str) -> None:
        del self._freeable[identifier]
        del self._holders[identifier]
        self.num_free_slots += self._rows.pop(identifier)
        self._evicted.append(identifier)

    def allocate(self, request: Request, input_id: int) -> None:
        """Enter an output for which :meth:`can_allocate` made room."""
        identifier = request.mm_features[input_id].identifier
        rows = request.get_num_encoder_embeds(input_id)
        self._holders[identifier] = {request.request_id: {input_id}}
        self._rows[identifier] = rows
        self.num_free_slots -= rows
        self.num_freeable_slots -= rows

    def get_cached_input_ids(self, request: Request) -> set[int]:
        """Features of which the request took an occurrence that it has not let go."""
        return {
            input_id
            for input_id, feature in enumerate(request.mm_features)
            if input_id in self._occurrences(request, feature.identifier)
        }

    def _occurrences(self, request: Request, identifier: str) -> set[int]:
        return self._holders.get(identifier, {}).get(request.request_id, set())

    def free_encoder_input(self, request: Request, input_id: int) -> None:
        """Let one occurrence go; the entry becomes freeable with its last reference.

        A feature that the request did not take is ignored: a prefix hit skips features that
        progress passes all the same.
        """
        identifier = request.mm_features[input_id].identifier
        occurrences = self._occurrences(request, identifier)
        if input_id not in occurrences:
            return
        occurrences.remove(input_id)
        if not occurrences:
            self._drop_reference(request, input_id)

    def _drop_reference(self, request: Request, input_id: int) -> None:
        identifier = request.mm_features[input_id].identifier
        holders = self._holders[identifier]
        del holders[request.request_id]
        if not holders:
            self._freeable[identifier] = None
            self.num_freeable_slots += self._rows_to_credit(request, input_id)

    def _rows_to_credit(self, request: Request, input_id: int) -> int:
        return self._rows[request.mm_features[input_id].identifier]

    def free(self, request: Request) -> None:
        """Let every occurrence of the request go."""
        for input_id in sorted(self.get_cached_input_ids(request)):
            self.free_encoder_input(request, input_id)

    def cancel(self, request: Request, input_id: int) -> None:
        """Take an unreferenced entry out that was entered in this pass and will not be computed.

        No notice follows: the worker never gets its tensor.
        """
        identifier = request.mm_features[input_id].identifier
        if identifier in self._freeable:
            del self._freeable[identifier]
            del self._holders[identifier]
            self.num_free_slots += self._rows.pop(identifier)

    def get_freed_mm_hashes(self) -> list[str]:
        """End the pass: hashes evicted in it and not allocated again since.

        An entry that came back within the pass is live, and the worker must keep its tensor (pull
        request 52482).
        """
        evicted, self._evicted = self._evicted, []
        return [identifier for identifier in evicted if identifier not in self._holders]


class EncoderDecoderCacheManager:
    """The encoder-decoder book: it counts the slots of outputs whose first step has not run.

    Outputs are not shared and not kept: cross-attention reads them once. Each item is credited
    once, when its reference goes. Releases up to 0.33.0 credit it again at every decode step
    (51228, 55733, 55734).

    Args:
        cache_size: capacity (rows).
    """

    def __init__(self, cache_size: int) -> None:
        self.cache_size = cache_size
        self.reset()

    def reset(self) -> None:
        """Forget all items and notices."""
        self.num_free_slots = self.cache_size
        self._rows_held: dict[tuple[str, int], int] = {}
        self._allocated: list[str] = []
        self._executed: list[str] = []

    def check_and_update_cache(self, request: Request, input_id: int) -> bool:
        """Never a hit: outputs are not kept."""
        return False

    def has_other_rows(self, request: Request, input_id: int) -> bool:
        """Never: outputs are not kept."""
        return False

    def can_allocate(
        self,
        request: Request,
        input_id: int,
        encoder_compute_budget: int,
        num_embeds_to_schedule: int,
    ) -> bool:
        """Whether the item fits; arguments as in :meth:`EncoderCacheManager.can_allocate`."""
        rows = request.get_num_encoder_embeds(input_id)
        if rows > encoder_compute_budget:
            return False
        return rows + num_embeds_to_schedule <= self.num_free_slots

    def allocate(self, request: Request, input_id: int) -> None:
        """Count the item's slots."""
        rows = request.get_num_encoder_embeds(input_id)
        key = (request.request_id, input_id)
        self._rows_held[key] = self._rows_held.get(key, 0) + rows
        self.num_free_slots -= rows
        self._allocated.append(request.mm_features[input_id].identifier)

    def get_cached_input_ids(self, request: Request) -> set[int]:
        """Features of the request whose slots are counted."""
        return {
            input_id
            for input_id in range(len(request.mm_features))
            if (request.request_id, input_id) in self._rows_held
        }

    def free_encoder_input(self, request: Request, input_id: int) -> None:
        """Credit the item's slots; nothing the second time."""
        self.num_free_slots += self._rows_held.pop((request.request_id, input_id), 0)

    def free(self, request: Request) -> None:
        """Credit all items of the request that are still counted."""
        for input_id in sorted(self.get_cached_input_ids(request)):
            self.free_encoder_input(request, input_id)

    def cancel(self, request: Request, input_id: int) -> None:
        """Forget an output of this pass that will not be computed; its slots are credited."""
        self.free_encoder_input(request, input_id)
        identifier = request.mm_features[input_id].identifier
        if identifier in self._allocated:
            self._allocated.remove(identifier)

    def get_freed_mm_hashes(self) -> list[str]:
        """End the pass: outputs of the pass before, whose step the worker has run by then."""
        executed, self._executed, self._allocated = self._executed, self._allocated, []
        return executed
