"""Every known fault as a named switch over the reference implementation: one small override each.

A switch turns a correct implementation into one with exactly that fault, so that a claim that
cannot see it is known to be blind. Numbers are public pull requests and issues of vLLM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from impl import fault_overrides
from impl.reference.parts import Parts
from spec.errors import InputError


@dataclass(frozen=True)
class Fault:
    """A switch.

    Attributes:
        name: what it is called on command lines and in claims.
        sentence: what goes wrong.
        public: where it was reported or fixed, or why it has no number.
        breaks: ids of all claims that it breaks at function level, and no others.
        apply: makes the parts with the fault from parts without it.
    """

    name: str
    sentence: str
    public: str
    breaks: tuple[str, ...]
    apply: Callable[[Parts], Parts]


FAULTS: tuple[Fault, ...] = (
    Fault(
        "no-boundary-tolerance",
        "a boundary feature that is not resident raises",
        "46315: up to 0.23.0",
        ("boundary-miss-tolerated",),
        fault_overrides.no_boundary_tolerance,
    ),
    Fault(
        "interior-miss-swallowed",
        "any miss is skipped, so that a broken invariant goes unseen",
        "38622, 53451: never released",
        ("interior-miss-raises",),
        fault_overrides.interior_miss_swallowed,
    ),
    Fault(
        "clamped-drafter-window",
        "features past the processed end are not looked at, resident or not",
        "46315: how its first version avoided the miss",
        ("boundary-used-when-resident",),
        fault_overrides.clamped_drafter_window,
    ),
    Fault(
        "rows-by-position",
        "rows of a masked output are cut by position, as if the mask were all true",
        "none: made for the claim",
        ("rows-exact",),
        fault_overrides.rows_by_position,
    ),
    Fault(
        "mask-fills-span",
        "every position of a gathered feature is marked, its text positions too",
        "none: made for the claim",
        ("mask-exact",),
        fault_overrides.mask_fills_span,
    ),
    Fault(
        "v2-splits-rows",
        "V2 returns each row as a tensor of its own",
        "none: made for the claim",
        ("runners-agree",),
        fault_overrides.v2_splits_rows,
    ),
    Fault(
        "window-search-late",
        "the search starts one token late: a feature that ends one token into it is lost",
        "none: made for the claim",
        (
            "window-exact",
            "rows-exact",
            "mask-exact",
            "interior-miss-raises",
            "boundary-used-when-resident",
        ),
        fault_overrides.window_search_late,
    ),
    Fault(
        "negative-mask-index",
        "rows of an empty range at the start of a mask are counted from the mask's end",
        "fixed by 0.20.2, without a number",
        ("row-range-exact",),
        fault_overrides.negative_mask_index,
    ),
    Fault(
        "free-ignores-placeholders",
        "tokens counted in advance pass for confirmed progress",
        "45347: up to 0.23.0",
        ("freed-not-needed",),
        fault_overrides.free_ignores_placeholders,
    ),
    Fault(
        "deferred-free-margin",
        "references are held one token longer than needed; safe, but it can stop progress, which "
        "only a running loop shows",
        "46315, vllm-ascend 17195: 0.24.0 to 0.32.0",
        (),
        fault_overrides.deferred_free_margin,
    ),
    Fault(
        "dropped-at-first-occurrence",
        "a request that repeats an item drops its only reference with the first occurrence",
        "54284: up to 0.28.0",
        ("held-until-last-use",),
        fault_overrides.dropped_at_first_occurrence,
    ),
    Fault(
        "own-size-free",
        "a hash is reused with another number of rows, and slots are credited by the request's own",
        "57696: up to 0.30.0",
        ("slots-conserved",),
        fault_overrides.own_size_free,
    ),
    Fault(
        "encoder-decoder-credit",
        "the slots of an encoder-decoder item are credited again at every decode step",
        "51228, 55733, 55734: up to 0.33.0",
        ("slots-conserved",),
        fault_overrides.encoder_decoder_credit,
    ),
    Fault(
        "stale-eviction-notice",
        "an entry evicted and allocated again in one pass is still announced as evicted",
        "52482: up to 0.27.1",
        ("evicted-not-live",),
        fault_overrides.stale_eviction_notice,
    ),
    Fault(
        "evicts-newest-first",
        "the entry that became unreferenced last is evicted first",
        "none: made for the claim",
        ("book-exact",),
        fault_overrides.evicts_newest_first,
    ),
    Fault(
        "finish-keeps-references",
        "the end of a request leaves its references in the book",
        "none: made for the claim; 31857 is its relative for waiting requests",
        ("released",),
        fault_overrides.finish_keeps_references,
    ),
    Fault(
        "finish-needs-references",
        "the end of a request that holds no reference raises",
        "none: made for the claim",
        ("no-error",),
        fault_overrides.finish_needs_references,
    ),
)

BY_NAME: dict[str, Fault] = {fault.name: fault for fault in FAULTS}


def fault(name: str) -> Fault:
    """The fault with the given name.

    Raises:
        InputError: there is none; the message lists those that exist.
    """
    known = BY_NAME.get(name)
    if known is None:
        raise InputError(f"unknown fault {name!r}; known faults: {', '.join(sorted(BY_NAME))}")
    return known
