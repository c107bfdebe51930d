"""Every known fault as a named switch over the reference implementation: one small override each.

A switch turns a correct implementation into one with exactly that fault, so that a claim that
cannot see it is known to be blind. Numbers are public pull requests and issues of vLLM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce

from impl.faults import in_book, in_gathers, in_runs, scenarios
from impl.reference.parts import Parts
from impl.target import Runner
from spec.errors import InputError
from spec.record.scenario import Scenario


@dataclass(frozen=True)
class Fault:
    """A switch.

    Attributes:
        name: what it is called on command lines and in claims.
        sentence: what goes wrong.
        public: where it was reported or fixed, or why it has no number.
        apply: makes the parts with the fault from parts without it.
        breaks: ids of all claims that it breaks at function level, and no others.
        breaks_in_loop: ids of all claims that ``scenario`` shows broken in the loop, and no others.
        may_also_break: ids of the further claims that it breaks in other scenarios; a scenario
            breaks no claim that is in neither of the two.
        why_several: why one scenario cannot do with one claim, or another one breaks more; empty
            where neither is so.
        scenario: the smallest known scenario that shows it in the loop; ``None`` where nothing
            shows there.
        without: id of the assumption (:mod:`spec.claims.assumptions`) that the scenario
            breaks, since the fault shows only then; claims that rest on it are not judged. Empty
            for none.
        not_in_loop: why nothing shows in the loop; empty where something does.
        runner: the only runner that shows it in the loop; ``None`` where both do.
    """

    name: str
    sentence: str
    public: str
    apply: Callable[[Parts], Parts]
    breaks: tuple[str, ...] = ()
    breaks_in_loop: tuple[str, ...] = ()
    may_also_break: tuple[str, ...] = ()
    why_several: str = ""
    scenario: Scenario | None = None
    without: str = ""
    not_in_loop: str = ""
    runner: Runner | None = None


FUNCTION_FAULTS: tuple[Fault, ...] = (
    Fault(
        "no-boundary-tolerance",
        "a boundary feature that is not resident raises",
        "46315: up to 0.23.0",
        in_gathers.no_boundary_tolerance,
        breaks=("boundary-miss-tolerated",),
        breaks_in_loop=("boundary-miss-tolerated",),
        scenario=scenarios.BOUNDARY_MISSING,
    ),
    Fault(
        "interior-miss-swallowed",
        "any miss is skipped, so that a broken invariant goes unseen",
        "38622, 53451: never released",
        in_gathers.interior_miss_swallowed,
        breaks=("interior-miss-raises",),
        breaks_in_loop=("interior-miss-raises",),
        scenario=scenarios.MISS_OF_DRAFTER,
        without="scheduler-looks-as-far",
    ),
    Fault(
        "clamped-drafter-window",
        "features past the processed end are not looked at, resident or not",
        "46315: how its first version avoided the miss",
        in_gathers.clamped_drafter_window,
        breaks=("boundary-used-when-resident",),
        breaks_in_loop=("boundary-used-when-resident",),
        scenario=scenarios.BOUNDARY_RESIDENT,
    ),
    Fault(
        "rows-by-position",
        "rows of a masked output are cut by position, as if the mask were all true",
        "none: made for the claim",
        in_gathers.rows_by_position,
        breaks=("rows-exact",),
        breaks_in_loop=("rows-exact",),
        scenario=scenarios.TEXT_BEFORE_ROW_APART,
    ),
    Fault(
        "mask-fills-span",
        "every position of a gathered feature is marked, its text positions too",
        "none: made for the claim",
        in_gathers.mask_fills_span,
        breaks=("mask-exact",),
        breaks_in_loop=("mask-exact",),
        scenario=scenarios.TEXT_BEFORE_ROW,
    ),
    Fault(
        "v2-splits-rows",
        "V2 returns each row as a tensor of its own",
        "none: made for the claim",
        in_gathers.v2_splits_rows,
        breaks=("runners-agree",),
        breaks_in_loop=("runners-agree",),
        scenario=scenarios.TWO_ROWS,
    ),
    Fault(
        "window-search-late",
        "the search starts one token late: a feature that ends one token into it is lost",
        "none: made for the claim",
        in_gathers.window_search_late,
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
        scenario=scenarios.ONE_TOKEN_ITEM,
        runner="V2",
    ),
    Fault(
        "negative-mask-index",
        "rows of an empty range at the start of a mask are counted from the mask's end",
        "fixed by 0.20.2, without a number",
        in_book.negative_mask_index,
        breaks=("row-range-exact",),
        not_in_loop="neither the gathers nor a scheduler that looks as far as its window ask for "
        "the rows of an empty range",
    ),
    Fault(
        "free-ignores-placeholders",
        "tokens counted in advance pass for confirmed progress",
        "45347: up to 0.23.0",
        in_book.free_ignores_placeholders,
        breaks=("freed-not-needed",),
        not_in_loop="placeholders begin where the prompt ends, and no feature reaches beyond it "
        "(assumption features-in-prompt)",
    ),
    Fault(
        "deferred-free-margin",
        "references are held one token longer than needed; safe, but it can stop progress, which "
        "only a running loop shows",
        "46315, vllm-ascend 17195: 0.24.0 to 0.32.0",
        in_book.deferred_free_margin,
        breaks_in_loop=("no-stall",),
        may_also_break=("no-thrash",),
        why_several="a request that waits for the room which it holds itself stands still; with "
        "few KV blocks it is preempted there and comes back, again and again",
        scenario=scenarios.NO_ROOM_FOR_SECOND,
    ),
    Fault(
        "dropped-at-first-occurrence",
        "a request that repeats an item drops its only reference with the first occurrence",
        "54284: up to 0.28.0",
        in_book.dropped_at_first_occurrence,
        breaks=("held-until-last-use",),
        breaks_in_loop=("held-until-last-use",),
        scenario=scenarios.SPLIT_REPETITION,
    ),
    Fault(
        "own-size-free",
        "a hash is reused with another number of rows, and slots are credited by the request's own",
        "57696: up to 0.30.0",
        in_book.own_size_free,
        breaks=("slots-conserved",),
        breaks_in_loop=("slots-conserved", "fresh-tensor"),
        why_several="whoever credits by another row count also read a tensor with another row "
        "count",
        scenario=scenarios.OTHER_ROWS,
        without="hash-is-content",
    ),
    Fault(
        "encoder-decoder-credit",
        "the slots of an encoder-decoder item are credited again at every decode step",
        "51228, 55733, 55734: up to 0.33.0",
        in_book.encoder_decoder_credit,
        breaks=("slots-conserved",),
        breaks_in_loop=("slots-conserved", "worker-bounded"),
        why_several="slots that nobody freed are given away, and the worker outgrows the cache",
        scenario=scenarios.CREDITED_TWICE,
    ),
    Fault(
        "stale-eviction-notice",
        "an entry evicted and allocated again in one pass is still announced as evicted",
        "52482: up to 0.27.1",
        in_book.stale_eviction_notice,
        breaks=("evicted-not-live",),
        breaks_in_loop=("evicted-not-live",),
        scenario=scenarios.EVICTED_AND_BACK,
    ),
    Fault(
        "evicts-newest-first",
        "the entry that became unreferenced last is evicted first",
        "none: made for the claim",
        in_book.evicts_newest_first,
        breaks=("book-exact",),
        not_in_loop="the order of evictions costs encodings alone; no claim on the loop is about "
        "it",
    ),
    Fault(
        "finish-keeps-references",
        "the end of a request leaves its references in the book",
        "none: made for the claim; 31857 is its relative for waiting requests",
        in_book.finish_keeps_references,
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
        scenario=scenarios.ABORTED_IN_ITEM,
    ),
    Fault(
        "finish-needs-references",
        "the end of a request that holds no reference raises",
        "none: made for the claim",
        in_book.finish_needs_references,
        breaks=("no-error",),
        breaks_in_loop=("no-error",),
        scenario=scenarios.ONE_TOKEN_OF_TEXT,
    ),
)
"""Faults that single functions show, most of them in the running loop as well."""

LOOP_FAULTS: tuple[Fault, ...] = (
    Fault(
        "no-scheduler-shift",
        "the scheduler does not know that the drafter reads ahead",
        "29750, 32469: up to 0.11.2",
        in_runs.no_scheduler_shift,
        breaks_in_loop=("drafter-resident-or-boundary", "need-agrees"),
        may_also_break=("held-until-last-use",),
        why_several="the drafter's own row, inside the processed range, is what nobody asked for; "
        "an item at the boundary that the pass encodes for an earlier place counts as a duplicate, "
        "and takes no reference: A[0,2) A[2,4) with chunks of 2",
        scenario=scenarios.LEADING_GAP,
    ),
    Fault(
        "boundary-never-encoded",
        "the window is shifted, but a feature without a row before the chunk's end is passed over",
        "38551, 45658, 46315, 51603: 0.14 to 0.27.1",
        in_runs.boundary_never_encoded,
        breaks_in_loop=("need-agrees",),
        may_also_break=("drafter-resident-or-boundary",),
        why_several="a boundary feature that is missing is tolerated; one whose mask starts with "
        "text can lie inside the processed range: masked-leading-gap",
        scenario=scenarios.BOUNDARY_RESIDENT,
    ),
    Fault(
        "masked-leading-gap",
        "the same override as boundary-never-encoded, reported as a crash with a mask that starts "
        "with text",
        "51603: up to 0.27.1",
        in_runs.boundary_never_encoded,
        breaks_in_loop=("drafter-resident-or-boundary", "need-agrees"),
        why_several="the drafter's own row, inside the processed range, is what nobody asked for",
        scenario=scenarios.LEADING_GAP,
    ),
    Fault(
        "shifted-cut",
        "a chunk ends the shift before a feature that was refused, so that the feature before it "
        "is never finished",
        "47738, 40707, vllm-ascend 17195: 0.14 to 0.32.0",
        in_runs.shifted_cut,
        breaks_in_loop=("no-stall",),
        may_also_break=(
            "no-thrash",
            "item-whole",
        ),
        why_several="with few KV blocks the stuck request and one that is preempted turn in a "
        "circle; with chunking of items off the early end splits the item before: A[0,2) B[2,3) "
        "with room for A ends at 1",
        scenario=scenarios.NO_ROOM_FOR_SECOND_SHIFTED,
    ),
    Fault(
        "align-after-cut",
        "a chunk that was cut before a refused feature is floored to a block boundary",
        "40707, 47738, 51603: up to 0.27.1",
        in_runs.align_after_cut,
        breaks_in_loop=("no-stall",),
        may_also_break=("no-thrash", "pass-uses-budget"),
        why_several="with few KV blocks the stuck request and one that is preempted turn in a "
        "circle; a chunk that was only shortened for the end of its prefill is cut to nothing, too",
        scenario=scenarios.NO_ROOM_FOR_SECOND_IN_BLOCK,
    ),
    Fault(
        "whole-item-cut-short",
        "with chunking of items off, a chunk ends the shift before an item in its window that it "
        "does not finish, even if that leaves no token",
        "none: 0.17 to 0.33.0",
        in_runs.whole_item_cut_short,
        breaks_in_loop=("no-stall",),
        may_also_break=("item-whole", "no-thrash"),
        why_several="the early end can lie inside the item before; with few KV blocks the stuck "
        "request and one that is preempted turn in a circle",
        scenario=scenarios.ITEM_AS_LONG_AS_BUDGET,
    ),
    Fault(
        "threshold-below-whole-item",
        "with chunking of items off, a threshold on long prefills below an item's length stops the "
        "request before it",
        "none: 0.33.0, where a request that is alone is spared the threshold",
        in_runs.threshold_below_whole_item,
        breaks_in_loop=("no-stall",),
        may_also_break=("no-thrash",),
        why_several="with few KV blocks the stuck request and one that is preempted turn in a "
        "circle",
        scenario=scenarios.ITEM_OVER_THRESHOLD,
    ),
    Fault(
        "reservation-after-cut",
        "a chunk that was cut close to the prompt's end is shortened again, even if that leaves no "
        "token",
        "none: 0.28.0 to 0.33.0",
        in_runs.reservation_after_cut,
        breaks_in_loop=("no-stall",),
        may_also_break=("item-whole", "no-thrash"),
        why_several="the shorter chunk can end inside a whole item; with few KV blocks the stuck "
        "request and one that is preempted turn in a circle",
        scenario=scenarios.NO_ROOM_FOR_SECOND_OF_LAST,
    ),
    Fault(
        "waiting-keeps-references",
        "a waiting request that does not run keeps the references it took",
        "31857: up to 0.11.2",
        in_runs.waiting_keeps_references,
        breaks_in_loop=("no-idle-references",),
        may_also_break=("no-stall",),
        why_several="what it keeps may be the room that a running request waits for",
        scenario=scenarios.HIT_WITHOUT_BLOCKS,
    ),
    Fault(
        "stalled-head-ends-pass",
        "a waiting request that can run no token ends the pass for all behind it",
        "fixed in 0.33.0, without a number",
        in_runs.stalled_head_ends_pass,
        breaks_in_loop=("work-conserving",),
        scenario=scenarios.STALLED_HEAD,
    ),
    Fault(
        "free-before-execution",
        "references are dropped when a pass is scheduled, before it has run",
        "38907: up to 0.19.1",
        in_runs.free_before_execution,
        breaks_in_loop=("dropped-in-update",),
        may_also_break=("held-until-last-use",),
        why_several="after a fall of progress by a failed KV load, drafts in flight reach back "
        "before what was let go; no miss follows, since the item is asked for again",
        scenario=scenarios.ONE_TOKEN_ITEM,
    ),
    Fault(
        "same-step-duplicate-unreferenced",
        "of two occurrences of an item in one pass only the first takes a reference",
        "fixed in 0.32.0, without a number",
        in_runs.same_step_duplicate_unreferenced,
        breaks_in_loop=("held-until-last-use",),
        scenario=scenarios.SPLIT_REPETITION,
    ),
    Fault(
        "item-split-at-start",
        "with chunking of items off, a chunk that starts on an item may end inside it",
        "52306, 52412: up to 0.32.0",
        in_runs.item_split_at_start,
        breaks_in_loop=("item-whole",),
        scenario=scenarios.ITEM_OVER_THRESHOLD,
    ),
    Fault(
        "warm-item-split",
        "with chunking of items off, an item that is in the book may be split",
        "fixed in 0.32.0, without a number",
        in_runs.warm_item_split,
        breaks_in_loop=("item-whole",),
        scenario=scenarios.WARM_ITEM,
    ),
    Fault(
        "cut-ends-late",
        "a chunk runs the first token of a feature that was refused",
        "none: made for the claim",
        in_runs.late_cut,
        breaks_in_loop=("target-resident",),
        may_also_break=(
            "drafter-resident-or-boundary",
            "item-whole",
        ),
        why_several="the first token may be text, and the next one's row the drafter's; with "
        "chunking of items off the chunk ends inside the item",
        scenario=scenarios.NO_ROOM_FOR_SECOND,
    ),
    Fault(
        "finished-drops-tensors",
        "the worker drops what a finished request used, whatever the book says",
        "none: made for the claim",
        in_runs.finished_drops_tensors,
        breaks_in_loop=("views-agree",),
        may_also_break=("target-resident", "drafter-resident-or-boundary"),
        why_several="whoever hits an entry that the worker lost misses",
        scenario=scenarios.USED_BY_FINISHED,
    ),
    Fault(
        "notices-lost",
        "the worker is never told what was evicted",
        "none: made for the claim",
        in_runs.notices_lost,
        breaks=("book-exact",),
        breaks_in_loop=("views-agree", "worker-bounded"),
        why_several="an entry is evicted only when the rows to come do not fit beside it, so that "
        "a worker that keeps it holds too many",
        scenario=scenarios.NO_ROOM_FOR_SECOND,
    ),
    Fault(
        "encoder-decoder-notices-late",
        "the worker is told to drop an encoder-decoder item a pass after its room was given away",
        "none: made for the claim",
        in_runs.encoder_decoder_notices_late,
        breaks_in_loop=("worker-bounded",),
        scenario=scenarios.ITEM_AFTER_ITEM,
    ),
    Fault(
        "freed-one-token-early",
        "a reference goes one token before the feature's end",
        "none: made for the claim",
        in_runs.freed_one_token_early,
        breaks=("freed-not-needed",),
        breaks_in_loop=("freed-not-needed",),
        may_also_break=("held-until-last-use",),
        why_several="if the last position takes a row, it is still to be read",
        scenario=scenarios.ROW_BEFORE_TEXT_APART,
    ),
    Fault(
        "v2-reset-keeps-tensors",
        "a reset of the cache empties the book, and not the V2 worker",
        "none: made for the claim",
        in_runs.v2_reset_keeps_tensors,
        breaks_in_loop=("fresh-tensor",),
        may_also_break=("views-agree", "worker-bounded"),
        why_several="what the book forgot and nobody asks for again stays on the worker",
        scenario=scenarios.RESET_IN_ITEM,
        runner="V2",
    ),
    Fault(
        "resumed-without-payload",
        "a request that resumes after a preemption is sent without its raw data, which V2 dropped",
        "none: made for the claim",
        in_runs.resumed_without_payload,
        breaks_in_loop=("payload-available", "views-agree", "target-resident"),
        may_also_break=("drafter-resident-or-boundary",),
        why_several="what cannot be encoded is in the book without being on the worker, and who "
        "reads it misses",
        scenario=scenarios.ITEM_AFTER_PREEMPTION,
        runner="V2",
    ),
    Fault(
        "admission-preempts",
        "a waiting request that gets no KV blocks preempts a running one, which waits and does the "
        "same",
        "none: made for the claim",
        in_runs.admission_preempts,
        breaks_in_loop=("no-thrash",),
        may_also_break=("counts-agree",),
        why_several="it preempts the last one that runs, whatever its priority",
        scenario=scenarios.TWO_LONG_PREFILLS,
    ),
    Fault(
        "ended-keeps-references",
        "a request that is aborted keeps its references",
        "none: made for the claim",
        in_runs.ended_keeps_references,
        breaks_in_loop=("released",),
        may_also_break=("no-stall",),
        why_several="what it keeps is room that others wait for",
        scenario=scenarios.ABORTED_IN_ITEM,
    ),
    Fault(
        "rejected-drafts-kept",
        "drafts that were rejected stay counted as computed",
        "none: made for the claim",
        in_runs.rejected_drafts_kept,
        breaks_in_loop=("counts-agree",),
        may_also_break=("no-stall",),
        why_several="a streaming request whose progress lies past the end of its next input gets "
        "no token of it",
        scenario=scenarios.REJECTED_DRAFT,
    ),
    Fault(
        "victim-budget-kept",
        "by priority, what a victim of the same pass was to run stays charged to the pass",
        "none: made for the claim",
        in_runs.victim_budget_kept,
        breaks_in_loop=("pass-uses-budget",),
        scenario=scenarios.VICTIM_BEFORE,
    ),
    Fault(
        "victim-budget-charged-twice",
        "by priority, what a victim of the same pass was to run is charged to the pass again",
        "none: made for the claim",
        in_runs.victim_budget_charged_twice,
        breaks_in_loop=("pass-uses-budget",),
        scenario=scenarios.VICTIM_BEFORE,
    ),
    Fault(
        "skips-behind-victim",
        "by priority, a running request is passed over when a victim stood before it in the queue",
        "fixed in 0.28.0, without a number: up to 0.27.1, where the victim had got no tokens",
        in_runs.skips_behind_victim,
        breaks_in_loop=("pass-uses-budget",),
        scenario=scenarios.VICTIM_BEFORE,
    ),
    Fault(
        "admits-one-a-pass",
        "a pass ends with the first request that it admits",
        "none: made for the claim",
        in_runs.admits_one_a_pass,
        breaks_in_loop=("pass-uses-budget",),
        may_also_break=("work-conserving",),
        why_several="the one behind it may stand behind a running request that was refused, too",
        scenario=scenarios.TWO_TEXTS,
    ),
    Fault(
        "threshold-exceeded-by-one",
        "a chunk of a long prefill has one token more than the threshold",
        "none: made for the claim",
        in_runs.threshold_exceeded_by_one,
        breaks_in_loop=("threshold-kept",),
        scenario=scenarios.TWO_OVER_THRESHOLD,
    ),
    Fault(
        "resumed-not-reserved",
        "a request that starts again after a preemption leaves a last chunk shorter than the shift",
        "none: made for the claim",
        in_runs.resumed_not_reserved,
        breaks_in_loop=("reservation-kept",),
        scenario=scenarios.LAST_CHUNK_RESUMED,
    ),
    Fault(
        "not-reserved-before-others",
        "while others wait, a request leaves a last chunk shorter than the shift",
        "none: made for the claim",
        in_runs.not_reserved_before_others,
        breaks_in_loop=("reservation-kept",),
        scenario=scenarios.LAST_CHUNK_BEFORE_OTHERS,
    ),
)
"""Faults of the scheduler, of the worker and between them, which the running loop shows."""

FAULTS: tuple[Fault, ...] = (*FUNCTION_FAULTS, *LOOP_FAULTS)

BY_NAME: dict[str, Fault] = {fault.name: fault for fault in FAULTS}


def fault(name: str) -> Fault:
    """The fault with the given name.

    Raises:
        InputError: there is none; the message lists those that exist.
    """
    switch = BY_NAME.get(name)
    if switch is None:
        raise InputError(f"unknown fault {name!r}; known faults: {', '.join(sorted(BY_NAME))}")
    return switch


def faulty_parts(names: Iterable[str]) -> Parts:
    """The reference's parts with the named faults, all active together.

    Raises:
        InputError: an unknown fault; the message lists those that exist.
    """
    switches = [fault(name) for name in sorted(names)]
    return reduce(lambda parts, switch: switch.apply(parts), switches, Parts())
