"""The switches that single functions show, most of them in the running loop as well."""

from __future__ import annotations

from impl.faults import free_and_book_overrides as fault_overrides
from impl.faults import gather_overrides as gather_fault_overrides
from impl.faults import scenarios as fault_scenarios
from impl.faults.fault import Fault

FUNCTION_FAULTS: tuple[Fault, ...] = (
    Fault(
        "no-boundary-tolerance",
        "a boundary feature that is not resident raises",
        "46315: up to 0.23.0",
        gather_fault_overrides.no_boundary_tolerance,
        breaks=("boundary-miss-tolerated",),
        breaks_in_loop=("boundary-miss-tolerated",),
        scenario=fault_scenarios.BOUNDARY_MISSING,
    ),
    Fault(
        "interior-miss-swallowed",
        "any miss is skipped, so that a broken invariant goes unseen",
        "38622, 53451: never released",
        gather_fault_overrides.interior_miss_swallowed,
        breaks=("interior-miss-raises",),
        breaks_in_loop=("interior-miss-raises",),
        scenario=fault_scenarios.MISS_OF_DRAFTER,
        without="scheduler-looks-as-far",
    ),
    Fault(
        "clamped-drafter-window",
        "features past the processed end are not looked at, resident or not",
        "46315: how its first version avoided the miss",
        gather_fault_overrides.clamped_drafter_window,
        breaks=("boundary-used-when-resident",),
        breaks_in_loop=("boundary-used-when-resident",),
        scenario=fault_scenarios.BOUNDARY_RESIDENT,
    ),
    Fault(
        "rows-by-position",
        "rows of a masked output are cut by position, as if the mask were all true",
        "none: made for the claim",
        gather_fault_overrides.rows_by_position,
        breaks=("rows-exact",),
        breaks_in_loop=("rows-exact",),
        scenario=fault_scenarios.TEXT_BEFORE_ROW_APART,
    ),
    Fault(
        "mask-fills-span",
        "every position of a gathered feature is marked, its text positions too",
        "none: made for the claim",
        gather_fault_overrides.mask_fills_span,
        breaks=("mask-exact",),
        breaks_in_loop=("mask-exact",),
        scenario=fault_scenarios.TEXT_BEFORE_ROW,
    ),
    Fault(
        "v2-splits-rows",
        "V2 returns each row as a tensor of its own",
        "none: made for the claim",
        gather_fault_overrides.v2_splits_rows,
        breaks=("runners-agree",),
        breaks_in_loop=("runners-agree",),
        scenario=fault_scenarios.TWO_ROWS,
    ),
    Fault(
        "window-search-late",
        "the search starts one token late: a feature that ends one token into it is lost",
        "none: made for the claim",
        gather_fault_overrides.window_search_late,
        breaks=(
            "window-exact",
            "rows-exact",
            "mask-exact",
            "interior-miss-raises",
            "boundary-used-when-resident",
        ),
        breaks_in_loop=("rows-exact", "mask-exact", "runners-agree"),
        may_also_break=("boundary-used-when-resident", "interior-miss-raises"),
        why_several="a feature that is lost is missing from the rows and from the mask, and V1, "
        "which does not search, has it; at the boundary it counts as skipped, and where it is "
        "missing nobody raises",
        scenario=fault_scenarios.ONE_TOKEN_ITEM,
        runner="V2",
    ),
    Fault(
        "negative-mask-index",
        "rows of an empty range at the start of a mask are counted from the mask's end",
        "fixed by 0.20.2, without a number",
        fault_overrides.negative_mask_index,
        breaks=("row-range-exact",),
        not_in_loop="neither the gathers nor a scheduler that looks as far as its window ask for "
        "the rows of an empty range",
    ),
    Fault(
        "free-ignores-placeholders",
        "tokens counted in advance pass for confirmed progress",
        "45347: up to 0.23.0",
        fault_overrides.free_ignores_placeholders,
        breaks=("freed-not-needed",),
        not_in_loop="placeholders begin where the prompt ends, and no feature reaches beyond it "
        "(assumption features-in-prompt)",
    ),
    Fault(
        "deferred-free-margin",
        "references are held one token longer than needed; safe, but it can stop progress, which "
        "only a running loop shows",
        "46315, vllm-ascend 17195: 0.24.0 to 0.32.0",
        fault_overrides.deferred_free_margin,
        breaks_in_loop=("no-stall",),
        may_also_break=("no-thrash",),
        why_several="a request that waits for the room which it holds itself stands still; with "
        "few KV blocks it is preempted there and comes back, again and again",
        scenario=fault_scenarios.NO_ROOM_FOR_SECOND,
    ),
    Fault(
        "dropped-at-first-occurrence",
        "a request that repeats an item drops its only reference with the first occurrence",
        "54284: up to 0.28.0",
        fault_overrides.dropped_at_first_occurrence,
        breaks=("held-until-last-use",),
        breaks_in_loop=("held-until-last-use",),
        scenario=fault_scenarios.SPLIT_REPETITION,
    ),
    Fault(
        "own-size-free",
        "a hash is reused with another number of rows, and slots are credited by the request's own",
        "57696: up to 0.30.0",
        fault_overrides.own_size_free,
        breaks=("slots-conserved",),
        breaks_in_loop=("slots-conserved", "fresh-tensor"),
        why_several="whoever credits by another row count also read a tensor with another row "
        "count",
        scenario=fault_scenarios.OTHER_ROWS,
        without="hash-is-content",
    ),
    Fault(
        "encoder-decoder-credit",
        "the slots of an encoder-decoder item are credited again at every decode step",
        "51228, 55733, 55734: up to 0.33.0",
        fault_overrides.encoder_decoder_credit,
        breaks=("slots-conserved",),
        breaks_in_loop=("slots-conserved", "worker-bounded"),
        why_several="slots that nobody freed are given away, and the worker outgrows the cache",
        scenario=fault_scenarios.CREDITED_TWICE,
    ),
    Fault(
        "stale-eviction-notice",
        "an entry evicted and allocated again in one pass is still announced as evicted",
        "52482: up to 0.27.1",
        fault_overrides.stale_eviction_notice,
        breaks=("evicted-not-live",),
        breaks_in_loop=("evicted-not-live",),
        scenario=fault_scenarios.EVICTED_AND_BACK,
    ),
    Fault(
        "evicts-newest-first",
        "the entry that became unreferenced last is evicted first",
        "none: made for the claim",
        fault_overrides.evicts_newest_first,
        breaks=("book-exact",),
        not_in_loop="the order of evictions costs encodings alone; no claim on the loop is about "
        "it",
    ),
    Fault(
        "finish-keeps-references",
        "the end of a request leaves its references in the book",
        "none: made for the claim; 31857 is its relative for waiting requests",
        fault_overrides.finish_keeps_references,
        breaks=("released",),
        breaks_in_loop=("released",),
        may_also_break=(
            "no-idle-references",
            "no-stall",
            "no-thrash",
            "views-agree",
            "target-resident",
            "drafter-resident-or-boundary",
        ),
        why_several="a preemption, a give-back and a rewind let go by the same call: what they "
        "keep is room that others wait for, and an entry that a preempted request would have "
        "encoded in the pass stays in the book without a tensor",
        scenario=fault_scenarios.ABORTED_IN_ITEM,
    ),
    Fault(
        "finish-needs-references",
        "the end of a request that holds no reference raises",
        "none: made for the claim",
        fault_overrides.finish_needs_references,
        breaks=("no-error",),
        breaks_in_loop=("no-error",),
        scenario=fault_scenarios.ONE_TOKEN_OF_TEXT,
    ),
)
