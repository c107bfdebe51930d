"""Which rules on stuck states each release follows.

Each row was read in the release's source, and is checked by running the release on scenarios that
tell its rules apart (``proofs/recorded/lint_grid.json``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from packaging.version import InvalidVersion, Version

from spec.errors import InputError

Tokens: TypeAlias = int | Literal["shift"]
"""A number of tokens, or as many as the scheduler looks ahead."""


@dataclass(frozen=True)
class Rules:
    """The rules of a scheduler that decide whether it can stand still.

    Attributes:
        margin: how far past an item's end progress must be before its reference goes.
        cut_shift: how far before a refused item a chunk ends.
        whole_cut_shift: how far before a whole item a chunk ends.
        largest_shift: the largest shift that the scheduler knows; ``None`` if any.
        passes_over_next: whether an item that begins where a chunk ends is not taken with it,
            though the window reaches it (51603: up to 0.27.1).
        spares_start: whether a whole item on which a chunk starts is never held back: it is split
            (up to 0.32), or the chunk runs on to its end (the reference).
        reserves: whether the reservation near the prefill's end may leave a chunk empty.
        spares_lone: whether the threshold on long prefills spares a request that is alone.
        aligns_after_cut: whether a chunk is aligned to blocks after it was cut.
        spares_last_blocks: whether a prompt's last blocks are not aligned: what is behind the last
            boundary, and with a drafter the block before it.
        runs_within_block: whether a chunk that cannot hold a block ends inside it; such settings
            are refused at start-up otherwise.
        stops_at_boundaries: whether an aligned chunk never crosses a block boundary when it starts
            inside a block, even to end the prefill.
        hashes_ahead: whether, with prefix caching, the last boundary at which a chunk stops lies
            the shift before the prompt's end or earlier, instead of being the last but one.
        asserts_padding: whether a new decode is padded with drafts, and asserted to keep them all.
        pads_behind_hits: whether that is so behind a prefix hit, too, where nobody else decodes.
    """

    margin: Tokens = 0
    cut_shift: Tokens = 0
    whole_cut_shift: Tokens = 0
    largest_shift: int | None = None
    passes_over_next: bool = False
    spares_start: bool = True
    reserves: bool = False
    spares_lone: bool = False
    aligns_after_cut: bool = False
    spares_last_blocks: bool = False
    runs_within_block: bool = False
    stops_at_boundaries: bool = False
    hashes_ahead: bool = False
    asserts_padding: bool = False
    pads_behind_hits: bool = False


REFERENCE = Rules()
"""The rules of the project's own engine, which never stands still."""

_UP_TO_0_23 = Rules(
    cut_shift="shift",
    whole_cut_shift="shift",
    largest_shift=1,
    passes_over_next=True,
    aligns_after_cut=True,
    spares_last_blocks=True,
)
_FROM_0_24 = replace(_UP_TO_0_23, margin="shift")
_FROM_0_27 = replace(_FROM_0_24, spares_last_blocks=False, runs_within_block=True)
_FROM_0_28 = replace(
    _FROM_0_27,
    largest_shift=None,
    passes_over_next=False,
    reserves=True,
    aligns_after_cut=False,
    stops_at_boundaries=True,
)
_FROM_0_29 = replace(_FROM_0_28, asserts_padding=True)
_FROM_0_30 = replace(_FROM_0_29, pads_behind_hits=True)
_FROM_0_31 = replace(_FROM_0_30, spares_lone=True)
_FROM_0_33 = replace(_FROM_0_31, margin=0, cut_shift=0, spares_start=False, hashes_ahead=True)

RELEASES: dict[str, Rules] = {
    "0.17.1": _UP_TO_0_23,
    "0.19.1": _UP_TO_0_23,
    "0.20.2": _UP_TO_0_23,
    "0.22.1": _UP_TO_0_23,
    "0.23.0": _UP_TO_0_23,
    "0.24.0": _FROM_0_24,
    "0.25.0": _FROM_0_24,
    "0.27.1": _FROM_0_27,
    "0.28.0": _FROM_0_28,
    "0.29.0": _FROM_0_29,
    "0.30.0": _FROM_0_30,
    "0.31.0": _FROM_0_31,
    "0.32.0": _FROM_0_31,
    "0.33.0": _FROM_0_33,
}
"""The rules of every release that was looked at, oldest first."""

NEWEST = "0.33.0"


def rules_of(release: str) -> Rules:
    """The rules of a release.

    A release between two that were looked at and follow the same rules follows them as well.

    Raises:
        InputError: the release was not looked at, or none is called so.
    """
    if release in RELEASES:
        return RELEASES[release]
    try:
        version = Version(release)
    except InvalidVersion:
        raise InputError(f"{release!r} is no release; give one like {NEWEST}") from None
    older = [name for name in RELEASES if Version(name) <= version]
    newer = [name for name in RELEASES if Version(name) >= version]
    if older and newer and RELEASES[older[-1]] == RELEASES[newer[0]]:
        return RELEASES[older[-1]]
    raise InputError(
        f"the rules of vLLM {release} are not known; known: {', '.join(RELEASES)}. Give the rules "
        "themselves instead (--margin, --cut-shift and so on)"
    )
