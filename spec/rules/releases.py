"""What releases of vLLM differ in, as far as the protocol depends on it, and what each one does.

*Rules* are what an engine does where releases differ; the defaults are those of the reference. A
*fault* is a named switch over the reference, which replaces some of its rules
(:mod:`spec.model.rules`). Every row of :data:`RELEASES` was read in the release's source. The
rules on where chunks end are proved equal to the source
(:mod:`proofs.source.passes.which_rule`); all rows are checked by running the releases on
scenarios that tell their rules apart (``proofs/recorded/lint_grid.json``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from packaging.version import InvalidVersion, Version

from spec.algebra import IntTerm
from spec.errors import InputError

Tokens: TypeAlias = int | Literal["shift"]
"""A number of tokens, or as many as the scheduler looks ahead."""


def in_tokens(value: Tokens, shift: IntTerm) -> IntTerm:
    """A rule's tokens where the scheduler looks so many tokens ahead."""
    return shift if value == "shift" else value


@dataclass(frozen=True)
class Shifts:
    """Rules in tokens, once it is known how far the scheduler looks ahead.

    Attributes:
        window: how far past a chunk's end items are asked for.
        margin: how far past an item's end progress must be before its reference goes.
        cut: how far before a refused item a chunk ends.
        whole_cut: the same before an item that must not be split.
    """

    window: IntTerm
    margin: IntTerm
    cut: IntTerm
    whole_cut: IntTerm = 0

    @property
    def reach(self) -> IntTerm:
        """How close to a refused item another one must end to be held at the cut."""
        return self.margin + self.cut


@dataclass(frozen=True, kw_only=True)
class ReleaseRules:
    """What releases differ in; the defaults are the reference's.

    Attributes:
        margin: tokens past an item's end that progress must be before its reference goes (46315).
        cut_shift: tokens before a refused item at which a chunk ends (47738, 40707).
        whole_cut_shift: the same before an item that must not be split. A shift here counts an item
            as split that lies behind the chunk and in its window, too.
        largest_shift: the largest shift that the scheduler knows (tokens); ``None`` if any.
        encodes_boundary: whether an item is asked for whose first row lies past the chunk, though
            the window reaches it (38551, 45658, 51603).
        extends_items: whether a chunk that starts on a whole item runs on to the item's end, past a
            threshold, where the token budget allows.
        splits_at_start: whether a chunk that starts on a whole item may end inside it (52306,
            52412). Where it may not, and does not run on either, the item is held back.
        splits_cached: whether a whole item that is in the book may be split.
        reservation: what a chunk does that would leave less than the shift of a prefill: nothing;
            end early unless that runs nothing or splits an item; or end early and run nothing
            otherwise.
        stalled_head_ends_pass: whether a waiting request that can run no token ends the pass for
            those behind it.
        spares_lone: whether the threshold on long prefills spares a request that is alone.
        aligns_after_cut: whether a chunk is aligned to blocks after it was cut.
        spares_last_blocks: whether a prompt's last blocks are not aligned: what is behind the last
            boundary, and with a drafter the block before it.
        runs_within_block: whether a chunk that cannot hold a block ends inside it; otherwise such
            settings are refused at start-up.
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
    encodes_boundary: bool = True
    extends_items: bool = True
    splits_at_start: bool = False
    splits_cached: bool = False
    reservation: Literal["off", "yielding", "insisting"] = "yielding"
    stalled_head_ends_pass: bool = False
    spares_lone: bool = False
    aligns_after_cut: bool = False
    spares_last_blocks: bool = False
    runs_within_block: bool = False
    stops_at_boundaries: bool = False
    hashes_ahead: bool = False
    asserts_padding: bool = False
    pads_behind_hits: bool = False

    @property
    def spares_start(self) -> bool:
        """Whether a whole item on which a chunk starts is never held back."""
        return self.extends_items or self.splits_at_start

    def shifts(self, scheduler_lookahead: int) -> Shifts:
        """The rules in tokens, for a drafter that has the scheduler look so far ahead."""
        shift = scheduler_lookahead
        if self.largest_shift is not None:
            shift = min(shift, self.largest_shift)
        return Shifts(
            shift,
            in_tokens(self.margin, shift),
            in_tokens(self.cut_shift, shift),
            in_tokens(self.whole_cut_shift, shift),
        )

    def insists(self, scheduler_lookahead: int) -> bool:
        """Whether the reservation may leave a chunk empty; it asks for a shift of 2 or more."""
        return self.reservation == "insisting" and self.shifts(scheduler_lookahead).window >= 2


REFERENCE = ReleaseRules()
"""The rules of the project's own engine, which never stands still."""

_UP_TO_0_23 = ReleaseRules(
    cut_shift="shift",
    whole_cut_shift="shift",
    largest_shift=1,
    encodes_boundary=False,
    extends_items=False,
    splits_at_start=True,
    splits_cached=True,
    reservation="off",
    stalled_head_ends_pass=True,
    aligns_after_cut=True,
    spares_last_blocks=True,
)
# 46315: references are held for a margin.
_FROM_0_24 = replace(_UP_TO_0_23, margin="shift")
_FROM_0_27 = replace(_FROM_0_24, spares_last_blocks=False, runs_within_block=True)
# 51603: rows of the boundary are asked for; drafters of several modules, and their reservation.
_FROM_0_28 = replace(
    _FROM_0_27,
    largest_shift=None,
    encodes_boundary=True,
    reservation="insisting",
    aligns_after_cut=False,
    stops_at_boundaries=True,
)
_FROM_0_29 = replace(_FROM_0_28, asserts_padding=True)
_FROM_0_30 = replace(_FROM_0_29, pads_behind_hits=True)
_FROM_0_31 = replace(_FROM_0_30, spares_lone=True)
_FROM_0_32 = replace(_FROM_0_31, splits_cached=False)
# The margin of 46315 and the cut's shift of 47738 are gone; 52306: items are whole at their start.
_FROM_0_33 = replace(
    _FROM_0_32,
    margin=0,
    cut_shift=0,
    splits_at_start=False,
    stalled_head_ends_pass=False,
    hashes_ahead=True,
)

RELEASES: dict[str, ReleaseRules] = {
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
    "0.32.0": _FROM_0_32,
    "0.33.0": _FROM_0_33,
}
"""The rules of every release that was looked at, oldest first."""

NEWEST = "0.33.0"


@dataclass(frozen=True)
class ReadRules:
    """Rules that were read in a source.

    Attributes:
        rules: what was proved of the source; in all else the newest known release's rules.
        missing: what could not be proved, a sentence each.
    """

    rules: ReleaseRules
    missing: tuple[str, ...]


def is_later(release: str) -> bool:
    """Whether a release came after the newest that was looked at.

    Raises:
        InputError: no release is called so.
    """
    return _version(release) > Version(NEWEST)


def _version(release: str) -> Version:
    try:
        return Version(release)
    except InvalidVersion:
        raise InputError(f"{release!r} is no release; give one like {NEWEST}") from None


def rules_of(release: str) -> ReleaseRules:
    """The rules of a release.

    A release between two that were looked at follows their rules, where those stop at the same
    prompts.

    Raises:
        InputError: the release was not looked at, or none is called so.
    """
    if release in RELEASES:
        return RELEASES[release]
    version = _version(release)
    older = [name for name in RELEASES if Version(name) <= version]
    newer = [name for name in RELEASES if Version(name) >= version]
    if older and newer and _stop_alike(RELEASES[older[-1]], RELEASES[newer[0]]):
        return RELEASES[older[-1]]
    raise InputError(
        f"the rules of vLLM {release} are not known; known: {', '.join(RELEASES)}. Give the rules "
        "themselves instead (--margin, --cut-shift and so on)"
    )


def _stop_alike(first: ReleaseRules, second: ReleaseRules) -> bool:
    """Whether two releases stop at the same prompts: items that are cached hold nobody up."""
    return replace(first, splits_cached=False) == replace(second, splits_cached=False)
