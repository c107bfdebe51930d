"""Cases about scheduling encoder inputs: one request, a book, and the passes that follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from spec.errors import InputError
from spec.record.feature import Feature, require_sorted_and_disjoint, rows_by_identifier

_STRICT = {"extra": "forbid", "strict": True}

Holder: TypeAlias = Literal["nobody", "itself", "another"]
"""Who references an entry: nobody, the request itself, or another one."""


@dataclass(frozen=True)
class BookEntry:
    """An entry of the book before the first pass."""

    identifier: str
    num_rows: int
    holder: Holder = "nobody"

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class SchedulingCase:
    """One prefilling request, and passes in which encoder inputs are scheduled for it.

    Attributes:
        features: the request's features.
        prefill_len: tokens of its prefill; features lie inside it.
        num_computed_tokens: its progress before the first pass.
        token_budget: most tokens that a pass can give it.
        encoder_budget: rows that the encoder may compute in a pass.
        cache_size: rows of the book.
        scheduler_shift: how far past the chunk the scheduler looks (tokens); 0 without a drafter.
        whole_items: chunking of items is off.
        entries: what is in the book before the first pass; unreferenced entries oldest first.
        num_passes: passes to run, each after an update that has processed the one before.
    """

    features: tuple[Feature, ...]
    prefill_len: int
    num_computed_tokens: int
    token_budget: int
    encoder_budget: int
    cache_size: int
    scheduler_shift: int = 0
    whole_items: bool = False
    entries: tuple[BookEntry, ...] = ()
    num_passes: int = 1
    kind: Literal["scheduling"] = "scheduling"

    __pydantic_config__ = _STRICT

    @property
    def is_lone_and_legal(self) -> bool:
        """Whether nobody else holds an entry, and every item fits the cache and the budgets.

        Then nothing but the request itself can keep it from running. A pass has tokens for a step
        of decoding with its drafts, of which there are at least as many as the shift.
        """
        rows = max((feature.num_rows for feature in self.features), default=0)
        tokens = max((feature.length for feature in self.features), default=0)
        return (
            all(entry.holder == "nobody" for entry in self.entries)
            and rows <= min(self.cache_size, self.encoder_budget)
            and self.token_budget > self.scheduler_shift
            and (tokens <= self.token_budget or not self.whole_items)
        )

    def validate(self) -> None:
        """Check that a scheduler can come to the case.

        Raises:
            InputError: features out of order, empty or past the prefill; nothing left to compute; a
                budget that is negative; entries that do not fit the cache, are listed twice, have
                another number of rows than a feature, or are held by a request without them.
        """
        require_sorted_and_disjoint(self.features, "scheduling case")
        for feature in self.features:
            if feature.length == 0 or feature.end > self.prefill_len:
                raise InputError(
                    f"scheduling case: feature {feature.describe()} must span a token and end by "
                    f"the prefill length {self.prefill_len}"
                )
        if not 0 <= self.num_computed_tokens < self.prefill_len:
            raise InputError(
                f"scheduling case: {self.num_computed_tokens} computed tokens of a prefill of "
                f"{self.prefill_len}; something must be left to compute"
            )
        if self.token_budget < 1 or self.num_passes < 1:
            raise InputError("scheduling case: needs a token budget and passes of at least 1")
        if self.encoder_budget < 0 or self.scheduler_shift < 0:
            raise InputError("scheduling case: the encoder budget and the shift are not negative")
        self._require_entries()

    def _require_entries(self) -> None:
        rows = rows_by_identifier(self.features)
        names = [entry.identifier for entry in self.entries]
        if len(set(names)) < len(names):
            raise InputError(f"scheduling case: an entry is listed twice among {', '.join(names)}")
        for entry in self.entries:
            if rows.get(entry.identifier, entry.num_rows) != entry.num_rows or entry.num_rows < 1:
                raise InputError(
                    f"scheduling case: entry {entry.identifier!r} has {entry.num_rows} rows; it "
                    "needs one, and as many as the features with its hash take"
                )
            if entry.holder == "itself" and entry.identifier not in rows:
                raise InputError(
                    f"scheduling case: the request has no feature {entry.identifier!r} to hold"
                )
        taken = sum(entry.num_rows for entry in self.entries)
        if taken > self.cache_size:
            raise InputError(
                f"scheduling case: entries of {taken} rows do not fit a cache of {self.cache_size}"
            )
