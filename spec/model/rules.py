"""The rules of the finite model: those of a release, and those that only a fault replaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spec.errors import InputError
from spec.rules.releases import ReleaseRules


@dataclass(frozen=True, kw_only=True)
class ModelRules(ReleaseRules):
    """One choice of rules; the defaults are the reference's.

    Attributes:
        frees: whether progress lets references go when a pass is updated, or is scheduled.
        looks_ahead: whether inputs are asked for up to the scheduler's shift past the chunk.
        cuts_late: whether a chunk runs one token of a feature that was refused.
        tolerates_boundary: whether a missing feature at the boundary is skipped.
        raises_interior: whether a missing feature inside the processed range is an error.
        reads_boundary: whether a resident feature at the boundary is read.
        gives_back: whether a waiting request that cannot run drops what it took.
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

    frees: Literal["in-update", "in-pass"] = "in-update"
    looks_ahead: bool = True
    cuts_late: bool = False
    tolerates_boundary: bool = True
    raises_interior: bool = True
    reads_boundary: bool = True
    gives_back: bool = True
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


REFERENCE = ModelRules()

FAULTY_RULES: dict[str, ModelRules] = {
    "no-boundary-tolerance": ModelRules(tolerates_boundary=False),
    "interior-miss-swallowed": ModelRules(raises_interior=False),
    "clamped-drafter-window": ModelRules(reads_boundary=False),
    "deferred-free-margin": ModelRules(margin=1),
    "dropped-at-first-occurrence": ModelRules(counts_occurrences=False),
    "stale-eviction-notice": ModelRules(notices="stale"),
    "evicts-newest-first": ModelRules(evicts_newest=True),
    "finish-keeps-references": ModelRules(free_all="nothing"),
    "finish-needs-references": ModelRules(free_all="raises"),
    "no-scheduler-shift": ModelRules(looks_ahead=False),
    "boundary-never-encoded": ModelRules(encodes_boundary=False),
    "masked-leading-gap": ModelRules(encodes_boundary=False),
    "shifted-cut": ModelRules(cut_shift="shift"),
    "align-after-cut": ModelRules(aligns_after_cut=True),
    "waiting-keeps-references": ModelRules(gives_back=False),
    "stalled-head-ends-pass": ModelRules(stalled_head_ends_pass=True),
    "free-before-execution": ModelRules(frees="in-pass"),
    "same-step-duplicate-unreferenced": ModelRules(takes_duplicates=False),
    "item-split-at-start": ModelRules(splits_at_start=True),
    "warm-item-split": ModelRules(splits_cached=True),
    "whole-item-cut-short": ModelRules(whole_cut_shift="shift"),
    "threshold-below-whole-item": ModelRules(extends_items=False),
    "reservation-after-cut": ModelRules(reservation="insisting"),
    "cut-ends-late": ModelRules(cuts_late=True),
    "finished-drops-tensors": ModelRules(finished_drops_tensors=True),
    "notices-lost": ModelRules(notices="lost"),
    "freed-one-token-early": ModelRules(margin=-1),
    "resumed-without-payload": ModelRules(resends_payload=False),
    "admission-preempts": ModelRules(admission_preempts=True),
    "ended-keeps-references": ModelRules(end_releases=False),
    "rejected-drafts-kept": ModelRules(takes_rejections_back=False),
}
"""By the name of the fault: the rules that the reference follows under that switch."""


def faulty_rules(fault: str) -> ModelRules:
    """The rules under a fault.

    Raises:
        InputError: the model has no such fault; the message lists those that it has.
    """
    rules = FAULTY_RULES.get(fault)
    if rules is None:
        raise InputError(
            f"the model has no fault {fault!r}; it has: {', '.join(sorted(FAULTY_RULES))}"
        )
    return rules
