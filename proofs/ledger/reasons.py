"""What the ledger cannot read off the code: the reasons why a link is missing.

A reason stands only where there is no link: whoever adds a proof of a claim drops its reason here.
"""

from __future__ import annotations

WHY_NO_PROOF: dict[str, str] = {
    "no-thrash": "a circle goes through preemptions and tries of several requests, of which no "
    "one number always grows; every circle of a small scope is searched for",
    "work-conserving": "it compares requests that stand behind one another in a queue, and the "
    "order of a queue is left open where all numbers are proved for",
    "pass-uses-budget": "a pass gives each request what those before it left, and the order of a "
    "queue, like what comes back from a victim, is left open where all numbers are proved for",
}
"""Why only search covers a claim."""

_A_RULE = "that an engine does so: the relation takes it as its rule, and runs are laid against it"

LEFT_TO_SEARCH: dict[str, str] = {
    "rows-exact": "what tensors hold, and their merge: they are no integers",
    "mask-exact": "the mask as a tensor, and the merge that follows it",
    "runners-agree": "everything but the two tests for the boundary: how rows are cut and joined",
    "book-exact": "which of the unreferenced entries goes first",
    "no-error": "exceptions of code; what is proved is that slices of rows are in range",
    "fresh-tensor": "whose content was encoded: a proof knows when, and hash-is-content is assumed",
    "item-whole": "that code applies the rules of a chunk's end in the order that the proofs take: "
    "cuts item by item, then the reservation",
    "counts-agree": "statuses, queues, batches and KV blocks, which the relation leaves open; "
    "placeholders and drafts are proved",
    "released": _A_RULE,
    "evicted-not-live": _A_RULE,
    "dropped-in-update": _A_RULE,
    "need-agrees": _A_RULE,
    "payload-available": _A_RULE,
}
"""What the proofs of a claim leave to search."""

WHY_NO_SOURCE: dict[str, str] = {
    "runners-agree": "each runner's gather is proved against one oracle, and so the two agree",
    "fresh-tensor": "a proof of the source has no contents",
    "payload-available": "a proof of the source has no raw data",
    "counts-agree": "the numbers of a symbolic run are what its other claims are judged by",
    "work-conserving": "a proof of the source is about one request, and this about those behind it",
    "pass-uses-budget": "a proof of the source is about one request, which has the budget alone",
    "threshold-kept": "a proof of the source is about one request, and the threshold is for others",
    "reservation-kept": "not yet: such a proof judges what a chunk reads, not what it leaves",
}
"""Why a release's source is not proved for a claim."""

_A_CALL = "it is about one call's answer, which a trace does not show; what a wrong answer leads "
_A_CASE = "a case of a single function says itself what is resident, or asked for"
_PASSES = "no single call shows it: it is about what whole passes do"

WHY_NOT_AT_A_LEVEL: dict[str, str] = {
    "window-exact": _A_CALL + "to shows under rows-exact and mask-exact",
    "row-range-exact": _A_CALL + "to shows under rows-exact",
    "book-exact": _A_CALL + "to shows under slots-conserved, evicted-not-live and views-agree",
    "target-resident": _A_CASE,
    "drafter-resident-or-boundary": _A_CASE,
    "need-agrees": _A_CASE,
    "views-agree": _PASSES,
    "worker-bounded": _PASSES,
    "dropped-in-update": _PASSES,
    "fresh-tensor": "a case's outputs are of its own content, each encoded once",
    "payload-available": _PASSES,
    "item-whole": _PASSES,
    "no-idle-references": _PASSES,
    "counts-agree": _PASSES,
    "no-stall": _PASSES,
    "no-thrash": _PASSES,
    "work-conserving": _PASSES,
    "pass-uses-budget": _PASSES,
    "threshold-kept": _PASSES,
    "reservation-kept": _PASSES,
}
"""Why a claim is checked at one level only: on functions, or in the loop."""

_OF_A_CALL = "it is about one call's answer, and the model has none that could differ from its rule"
_NO_ROWS = "the model holds tensors by hash, and no rows"

WHY_NOT_EXPLORED: dict[str, str] = {
    "rows-exact": _NO_ROWS,
    "mask-exact": _NO_ROWS,
    "fresh-tensor": "the model holds tensors by hash, and no contents",
    "pass-uses-budget": "not yet: what a victim leaves to those behind takes three requests, and "
    "the scopes have two",
    "threshold-kept": "not yet: the model takes where a chunk ends from the rules, and no switch "
    "of it changes that",
    "reservation-kept": "not yet: the same",
    "runners-agree": "the model is one, and in lockstep the reference runs as one runner",
    "window-exact": _OF_A_CALL,
    "row-range-exact": _OF_A_CALL,
    "book-exact": _OF_A_CALL,
}
"""Why the exhaustive search does not judge a claim."""

WHY_NO_EXPLORER_FAULT: dict[str, str] = {
    "slots-conserved": "its switches give one hash several row counts, or are of encoder-decoder "
    "models; the model has neither",
}
"""Why no switch breaks a claim in the exhaustive search, which judges it."""

_CODE = "what the switch changes is code around the rules: mutants of a release's code are under "
_IN_CODE = _CODE + "proof by `prove --source-of`"

_OF_QUEUE = "the order of a queue, and what a pass has left for whom in it, is code"

WHY_NO_ABLATION: dict[str, str] = {
    "no-boundary-tolerance": "a gather without the test is refuted under the invariant itself "
    "(boundary.gather-passes-iff-invariant/no-tolerance)",
    "interior-miss-swallowed": "code that asks no question is no variant of the rule; the nearest "
    "is boundary.target-miss-raises/one-token-early",
    "rows-by-position": _IN_CODE + "; the rule of the count is row-range-exact's",
    "mask-fills-span": _IN_CODE,
    "v2-splits-rows": "how rows are cut into tensors is not about numbers",
    "window-search-late": "changes of a guard by one are the mutants of every rule, each of which "
    "turns a proof red (tests/rules/test_rule_mutants.py)",
    "evicts-newest-first": "the order of evictions is the book's code; the rules say how many",
    "finish-needs-references": "an exception is no rule's outcome",
    "align-after-cut": "the proofs are about the faulty order itself, and say when exactly it "
    "stops: progress.aligned-neighbours-stay and those beside it",
    "threshold-below-whole-item": "the reference spares a whole item the threshold in its code",
    "stalled-head-ends-pass": _OF_QUEUE,
    "admission-preempts": "who makes room for whom is code",
    "victim-budget-kept": _OF_QUEUE,
    "victim-budget-charged-twice": _OF_QUEUE,
    "skips-behind-victim": _OF_QUEUE,
    "admits-one-a-pass": _OF_QUEUE,
    "resumed-not-reserved": "whether a rule is asked for whom is code; what it says is "
    "scheduling.reservation-leaves-the-shift, with not-reserved",
    "not-reserved-before-others": "the same",
}
"""Why no variant of a proof changes what a switch changes."""

ABLATIONS_OF_FAULTS: dict[str, tuple[str, ...]] = {
    "clamped-drafter-window": ("clamping.loses-rows-past-the-end/clamp-loses-nothing",),
    "negative-mask-index": ("rows.empty-range-has-no-row/negative-index",),
    "deferred-free-margin": ("progress.refused-at-progress-holds-nothing/margin",),
    "whole-item-cut-short": ("progress.whole-chunk-not-empty/shifted-cut",),
}
"""Variants of proofs that change the guard which a switch changes, where none bears its name."""
