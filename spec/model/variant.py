"""The rules of the loop that can be chosen: those of the reference, and every known departure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spec.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One choice of rules; the defaults are the reference's.

    Attributes:
        margin: tokens past a feature's end that progress must be before its reference goes.
        frees: whether progress lets references go when a pass is updated, or is scheduled.
        looks_ahead: whether inputs are asked for up to the scheduler's shift past the chunk.
        encodes_boundary: whether a feature is asked for if its first row lies past the chunk.
        refused_cut: where a chunk ends before a refused feature: at it, the shift before it, or one
            token late.
        whole_item_cut: where a chunk ends before a whole item that does not fit: at it; or the
            shift before it, also where the item lies past the chunk and in its window.
        extends_items: whether a chunk that starts on a whole item may run past a threshold.
        splits_at_start: whether a chunk that starts on a whole item may end inside it.
        splits_warm: whether a whole item that is in the book may be split.
        reservation: what a chunk near the prefill's end does about the shift: nothing; end early
            unless that runs nothing or splits an item; or end early and run nothing otherwise.
        aligns_again: whether a chunk is floored to a block boundary after its cut as well.
        tolerates_boundary: whether a missing feature at the boundary is skipped.
        raises_interior: whether a missing feature inside the processed range is an error.
        reads_boundary: whether a resident feature at the boundary is read.
        gives_back: whether a waiting request that cannot run drops what it took.
        stalled_head_ends_pass: whether it ends the pass for those behind it.
        takes_duplicates: whether a further occurrence in one pass takes a reference.
        counts_occurrences: whether a request keeps an entry until its last occurrence goes.
        notices: evictions announced: those of entries that stay away, all, or none.
        free_all: what letting all references go does: that, nothing, or an error without any.
        end_releases: whether the end of a request lets its references go.
        finished_drops_tensors: whether the worker drops what a finished request used.
        resends_payload: whether a V2 worker gets the raw data of a resumed request again.
        admission_preempts: whether a waiting request without KV blocks preempts a running one.
        takes_rejections_back: whether rejected drafts are no longer counted as computed.
        evicts_newest: whether the entry that became unreferenced last is evicted first.
    """

    margin: int = 0
    frees: Literal["in-update", "in-pass"] = "in-update"
    looks_ahead: bool = True
    encodes_boundary: bool = True
    refused_cut: Literal["plain", "shifted", "late"] = "plain"
    whole_item_cut: Literal["plain", "shifted"] = "plain"
    extends_items: bool = True
    splits_at_start: bool = False
    splits_warm: bool = False
    reservation: Literal["off", "yielding", "insisting"] = "yielding"
    aligns_again: bool = False
    tolerates_boundary: bool = True
    raises_interior: bool = True
    reads_boundary: bool = True
    gives_back: bool = True
    stalled_head_ends_pass: bool = False
    takes_duplicates: bool = True
    counts_occurrences: bool = True
    notices: Literal["exact", "stale", "lost"] = "exact"
    free_all: Literal["drops", "nothing", "raises"] = "drops"
    end_releases: bool = True
    finished_drops_tensors: bool = False
    resends_payload: bool = True
    admission_preempts: bool = False
    takes_rejections_back: bool = True
    evicts_newest: bool = False


REFERENCE = Variant()

VARIANTS: dict[str, Variant] = {
    "no-boundary-tolerance": Variant(tolerates_boundary=False),
    "interior-miss-swallowed": Variant(raises_interior=False),
    "clamped-drafter-window": Variant(reads_boundary=False),
    "deferred-free-margin": Variant(margin=1),
    "dropped-at-first-occurrence": Variant(counts_occurrences=False),
    "stale-eviction-notice": Variant(notices="stale"),
    "evicts-newest-first": Variant(evicts_newest=True),
    "finish-keeps-references": Variant(free_all="nothing"),
    "finish-needs-references": Variant(free_all="raises"),
    "no-scheduler-shift": Variant(looks_ahead=False),
    "boundary-never-encoded": Variant(encodes_boundary=False),
    "masked-leading-gap": Variant(encodes_boundary=False),
    "shifted-cut": Variant(refused_cut="shifted"),
    "align-after-cut": Variant(aligns_again=True),
    "waiting-keeps-references": Variant(gives_back=False),
    "stalled-head-ends-pass": Variant(stalled_head_ends_pass=True),
    "free-before-execution": Variant(frees="in-pass"),
    "same-step-duplicate-unreferenced": Variant(takes_duplicates=False),
    "item-split-at-start": Variant(splits_at_start=True),
    "warm-item-split": Variant(splits_warm=True),
    "whole-item-cut-short": Variant(whole_item_cut="shifted"),
    "threshold-below-whole-item": Variant(extends_items=False),
    "reservation-after-cut": Variant(reservation="insisting"),
    "cut-ends-late": Variant(refused_cut="late"),
    "finished-drops-tensors": Variant(finished_drops_tensors=True),
    "notices-lost": Variant(notices="lost"),
    "freed-one-token-early": Variant(margin=-1),
    "resumed-without-payload": Variant(resends_payload=False),
    "admission-preempts": Variant(admission_preempts=True),
    "ended-keeps-references": Variant(end_releases=False),
    "rejected-drafts-kept": Variant(takes_rejections_back=False),
}
"""The variant that departs as a switch of the same name does in the reference."""


def variant_of(fault: str) -> Variant:
    """The variant of a switch.

    Raises:
        InputError: the model has none of that name; the message lists those that it has.
    """
    known = VARIANTS.get(fault)
    if known is None:
        raise InputError(
            f"the model has no variant {fault!r}; it has: {', '.join(sorted(VARIANTS))}"
        )
    return known
