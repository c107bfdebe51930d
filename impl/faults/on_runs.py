"""The switches made for the running loop: in the scheduler, the worker, and what passes between."""

from __future__ import annotations

from impl.faults import run_overrides as loop_fault_overrides
from impl.faults import scenarios as fault_scenarios
from impl.faults.fault import Fault

LOOP_FAULTS: tuple[Fault, ...] = (
    Fault(
        "no-scheduler-shift",
        "the scheduler does not know that the drafter reads ahead",
        "29750, 32469: up to 0.11.2",
        loop_fault_overrides.no_scheduler_shift,
        breaks_in_loop=("drafter-resident-or-boundary", "need-agrees"),
        may_also_break=("held-until-last-use",),
        why_several="the drafter's own row, inside the processed range, is what nobody asked for; "
        "an item at the boundary that the pass encodes for an earlier place counts as a duplicate, "
        "and takes no reference: A[0,2) A[2,4) with chunks of 2",
        scenario=fault_scenarios.LEADING_GAP,
    ),
    Fault(
        "boundary-never-encoded",
        "the window is shifted, but a feature without a row before the chunk's end is passed over",
        "38551, 45658, 46315, 51603: 0.14 to 0.27.1",
        loop_fault_overrides.boundary_never_encoded,
        breaks_in_loop=("need-agrees",),
        may_also_break=("drafter-resident-or-boundary",),
        why_several="a boundary feature that is missing is tolerated; one whose mask starts with "
        "text can lie inside the processed range: masked-leading-gap",
        scenario=fault_scenarios.BOUNDARY_RESIDENT,
    ),
    Fault(
        "masked-leading-gap",
        "the same override as boundary-never-encoded, reported as a crash with a mask that starts "
        "with text",
        "51603: up to 0.27.1",
        loop_fault_overrides.boundary_never_encoded,
        breaks_in_loop=("drafter-resident-or-boundary", "need-agrees"),
        why_several="the drafter's own row, inside the processed range, is what nobody asked for",
        scenario=fault_scenarios.LEADING_GAP,
    ),
    Fault(
        "shifted-cut",
        "a chunk ends the shift before a feature that was refused, so that the feature before it "
        "is never finished",
        "47738, 40707, vllm-ascend 17195: 0.14 to 0.32.0",
        loop_fault_overrides.shifted_cut,
        breaks_in_loop=("no-stall",),
        may_also_break=(
            "no-thrash",
            "item-whole",
        ),
        why_several="with few KV blocks the stuck request and one that is preempted turn in a "
        "circle; with chunking of items off the early end splits the item before: A[0,2) B[2,3) "
        "with room for A ends at 1",
        scenario=fault_scenarios.NO_ROOM_FOR_SECOND_SHIFTED,
    ),
    Fault(
        "align-after-cut",
        "a chunk that was cut before a refused feature is floored to a block boundary",
        "40707, 47738, 51603: up to 0.27.1",
        loop_fault_overrides.align_after_cut,
        breaks_in_loop=("no-stall",),
        may_also_break=("no-thrash",),
        why_several="with few KV blocks the stuck request and one that is preempted turn in a "
        "circle",
        scenario=fault_scenarios.NO_ROOM_FOR_SECOND_IN_BLOCK,
    ),
    Fault(
        "whole-item-cut-short",
        "with chunking of items off, a chunk ends the shift before an item in its window that it "
        "does not finish, even if that leaves no token",
        "none: 0.17 to 0.33.0",
        loop_fault_overrides.whole_item_cut_short,
        breaks_in_loop=("no-stall",),
        may_also_break=("item-whole", "no-thrash"),
        why_several="the early end can lie inside the item before; with few KV blocks the stuck "
        "request and one that is preempted turn in a circle",
        scenario=fault_scenarios.ITEM_AS_LONG_AS_BUDGET,
    ),
    Fault(
        "threshold-below-whole-item",
        "with chunking of items off, a threshold on long prefills below an item's length stops the "
        "request before it",
        "none: 0.33.0, where a request that is alone is spared the threshold",
        loop_fault_overrides.threshold_below_whole_item,
        breaks_in_loop=("no-stall",),
        may_also_break=("no-thrash",),
        why_several="with few KV blocks the stuck request and one that is preempted turn in a "
        "circle",
        scenario=fault_scenarios.ITEM_OVER_THRESHOLD,
    ),
    Fault(
        "reservation-after-cut",
        "a chunk that was cut close to the prompt's end is shortened again, even if that leaves no "
        "token",
        "none: 0.28.0 to 0.33.0",
        loop_fault_overrides.reservation_after_cut,
        breaks_in_loop=("no-stall",),
        may_also_break=("item-whole", "no-thrash"),
        why_several="the shorter chunk can end inside a whole item; with few KV blocks the stuck "
        "request and one that is preempted turn in a circle",
        scenario=fault_scenarios.NO_ROOM_FOR_SECOND_OF_LAST,
    ),
    Fault(
        "waiting-keeps-references",
        "a waiting request that does not run keeps the references it took",
        "31857: up to 0.11.2",
        loop_fault_overrides.waiting_keeps_references,
        breaks_in_loop=("no-idle-references",),
        may_also_break=("no-stall",),
        why_several="what it keeps may be the room that a running request waits for",
        scenario=fault_scenarios.HIT_WITHOUT_BLOCKS,
    ),
    Fault(
        "stalled-head-ends-pass",
        "a waiting request that can run no token ends the pass for all behind it",
        "fixed in 0.33.0, without a number",
        loop_fault_overrides.stalled_head_ends_pass,
        breaks_in_loop=("work-conserving",),
        scenario=fault_scenarios.STALLED_HEAD,
    ),
    Fault(
        "free-before-execution",
        "references are dropped when a pass is scheduled, before it has run",
        "38907: up to 0.19.1",
        loop_fault_overrides.free_before_execution,
        breaks_in_loop=("dropped-in-update",),
        may_also_break=("held-until-last-use",),
        why_several="after a fall of progress by a failed KV load, drafts in flight reach back "
        "before what was let go; no miss follows, since the item is asked for again",
        scenario=fault_scenarios.ONE_TOKEN_ITEM,
    ),
    Fault(
        "same-step-duplicate-unreferenced",
        "of two occurrences of an item in one pass only the first takes a reference",
        "fixed in 0.32.0, without a number",
        loop_fault_overrides.same_step_duplicate_unreferenced,
        breaks_in_loop=("held-until-last-use",),
        scenario=fault_scenarios.SPLIT_REPETITION,
    ),
    Fault(
        "item-split-at-start",
        "with chunking of items off, a chunk that starts on an item may end inside it",
        "52306, 52412: up to 0.32.0",
        loop_fault_overrides.item_split_at_start,
        breaks_in_loop=("item-whole",),
        scenario=fault_scenarios.ITEM_OVER_THRESHOLD,
    ),
    Fault(
        "warm-item-split",
        "with chunking of items off, an item that is in the book may be split",
        "fixed in 0.32.0, without a number",
        loop_fault_overrides.warm_item_split,
        breaks_in_loop=("item-whole",),
        scenario=fault_scenarios.WARM_ITEM,
    ),
    Fault(
        "cut-ends-late",
        "a chunk runs the first token of a feature that was refused",
        "none: made for the claim",
        loop_fault_overrides.late_cut,
        breaks_in_loop=("target-resident",),
        may_also_break=(
            "drafter-resident-or-boundary",
            "item-whole",
        ),
        why_several="the first token may be text, and the next one's row the drafter's; with "
        "chunking of items off the chunk ends inside the item",
        scenario=fault_scenarios.NO_ROOM_FOR_SECOND,
    ),
    Fault(
        "finished-drops-tensors",
        "the worker drops what a finished request used, whatever the book says",
        "none: made for the claim",
        loop_fault_overrides.finished_drops_tensors,
        breaks_in_loop=("views-agree",),
        may_also_break=("target-resident", "drafter-resident-or-boundary"),
        why_several="whoever hits an entry that the worker lost misses",
        scenario=fault_scenarios.USED_BY_FINISHED,
    ),
    Fault(
        "notices-lost",
        "the worker is never told what was evicted",
        "none: made for the claim",
        loop_fault_overrides.notices_lost,
        breaks=("book-exact",),
        breaks_in_loop=("views-agree", "worker-bounded"),
        why_several="an entry is evicted only when the rows to come do not fit beside it, so that "
        "a worker that keeps it holds too many",
        scenario=fault_scenarios.NO_ROOM_FOR_SECOND,
    ),
    Fault(
        "encoder-decoder-notices-late",
        "the worker is told to drop an encoder-decoder item a pass after its room was given away",
        "none: made for the claim",
        loop_fault_overrides.encoder_decoder_notices_late,
        breaks_in_loop=("worker-bounded",),
        scenario=fault_scenarios.ITEM_AFTER_ITEM,
    ),
    Fault(
        "freed-one-token-early",
        "a reference goes one token before the feature's end",
        "none: made for the claim",
        loop_fault_overrides.freed_one_token_early,
        breaks=("freed-not-needed",),
        breaks_in_loop=("freed-not-needed",),
        may_also_break=("held-until-last-use",),
        why_several="if the last position takes a row, it is still to be read",
        scenario=fault_scenarios.ROW_BEFORE_TEXT_APART,
    ),
    Fault(
        "v2-reset-keeps-tensors",
        "a reset of the cache empties the book, and not the V2 worker",
        "none: made for the claim",
        loop_fault_overrides.v2_reset_keeps_tensors,
        breaks_in_loop=("fresh-tensor",),
        may_also_break=("views-agree", "worker-bounded"),
        why_several="what the book forgot and nobody asks for again stays on the worker",
        scenario=fault_scenarios.RESET_IN_ITEM,
        runner="V2",
    ),
    Fault(
        "resumed-without-payload",
        "a request that resumes after a preemption is sent without its raw data, which V2 dropped",
        "none: made for the claim",
        loop_fault_overrides.resumed_without_payload,
        breaks_in_loop=("payload-available", "views-agree", "target-resident"),
        may_also_break=("drafter-resident-or-boundary",),
        why_several="what cannot be encoded is in the book without being on the worker, and who "
        "reads it misses",
        scenario=fault_scenarios.ITEM_AFTER_PREEMPTION,
        runner="V2",
    ),
    Fault(
        "admission-preempts",
        "a waiting request that gets no KV blocks preempts a running one, which waits and does the "
        "same",
        "none: made for the claim",
        loop_fault_overrides.admission_preempts,
        breaks_in_loop=("no-thrash",),
        may_also_break=("counts-agree",),
        why_several="it preempts the last one that runs, whatever its priority",
        scenario=fault_scenarios.TWO_LONG_PREFILLS,
    ),
    Fault(
        "ended-keeps-references",
        "a request that is aborted keeps its references",
        "none: made for the claim",
        loop_fault_overrides.ended_keeps_references,
        breaks_in_loop=("released",),
        may_also_break=("no-stall",),
        why_several="what it keeps is room that others wait for",
        scenario=fault_scenarios.ABORTED_IN_ITEM,
    ),
    Fault(
        "rejected-drafts-kept",
        "drafts that were rejected stay counted as computed",
        "none: made for the claim",
        loop_fault_overrides.rejected_drafts_kept,
        breaks_in_loop=("counts-agree",),
        may_also_break=("no-stall",),
        why_several="a streaming request whose progress lies past the end of its next input gets "
        "no token of it",
        scenario=fault_scenarios.REJECTED_DRAFT,
    ),
)
