"""Which healthy engine could break each claim on runs, and why none does.

A claim says what must be true, not how the reference does it. For each claim the question is put
what a correct engine may do otherwise; the answer says what is judged instead, or what is let pass.
``residency claims CLAIM`` shows it.
"""

from __future__ import annotations

HEALTHY: dict[str, str] = {
    "target-resident": "none: a row that is not there cannot be read, whoever encoded it and when",
    "drafter-resident-or-boundary": "one that reads less far ahead: its look-ahead is taken from "
    "the settings, so that it is judged by what its own drafter reads",
    "boundary-miss-tolerated": "one that clamps the drafter's window reads no boundary feature and "
    "raises nothing; boundary-used-when-resident tells it apart",
    "interior-miss-raises": "one that raises another type of exception: only a message that names "
    "the hash is asked for",
    "rows-exact": "one that gathers in tensors of other sizes: rows are judged, not how they are "
    "cut",
    "mask-exact": "none: the merge counts the mask",
    "boundary-used-when-resident": "one whose drafter reads no embeddings: it has no look-ahead, "
    "and then nothing is asked",
    "runners-agree": "V2 skips a request whose shifted start is past its prefill: such reads are "
    "left out; an encoding's number, and steps behind the first different one, count for nothing",
    "freed-not-needed": "one that lets go later than it could: later is always allowed",
    "held-until-last-use": "one that takes no reference for an occurrence not yet reached: only "
    "taken occurrences count, and those of the pass that took them",
    "slots-conserved": "one that keeps no count of freeable slots, as the encoder-decoder book: "
    "what is not reported is not judged",
    "evicted-not-live": "one that evicts an entry and allocates it again in a pass: judged is the "
    "book at the pass's end alone",
    "released": "one that lets go at the end of a turn or at the end of the session: what counts "
    "is that nothing is held once the request has ended",
    "no-error": "one that refuses a request because its hash comes with another number of rows: "
    "that is a refusal, not an error, and is right only where it is so",
    "views-agree": "one whose worker gets notices late keeps more than the book: it exceeds what "
    "was reserved, so it is not healthy; the encoder-decoder book keeps no entries and is left out",
    "worker-bounded": "none: memory was reserved for the cache and no more",
    "dropped-in-update": "one that lets go in a pass for a preempted request, or gives back what a "
    "request took that cannot run: both are let pass",
    "fresh-tensor": "one that shares a tensor between requests: the content of the encoding "
    "counts, not the request for which it ran",
    "payload-available": "one that sends raw data with the input to be encoded, and not when the "
    "request starts: what comes with the very output counts",
    "item-whole": "one whose chunk starts inside an item behind a prefix hit: it is let pass and "
    "counted",
    "need-agrees": "one that asks for a feature before its turn, or twice: only one that was never "
    "asked for is found, and none behind a refusal or behind the cut before a whole item",
    "no-idle-references": "one that keeps the features that a paused session still has to read: "
    "let pass for rows that are not yet processed",
    "counts-agree": "one that ends a refused request in the update and not in the pass; one that "
    "sends raw data once more with the input to be encoded; one whose worker orders its batch by "
    "the length of ranges; one that finds blocks which the request itself generated; one that "
    "looks once more at a refused request before its update; one that pauses a streaming session "
    "again where its client closes it long after its last input: all are let pass",
    "no-stall": "one that waits on purpose, for a store of KV or a grammar: the world of a "
    "scenario answers within the step, so nothing is left to wait for",
    "no-thrash": "one that gives work back to let another request go on: as long as some request "
    "gets further than ever, it is let pass",
    "work-conserving": "one that keeps the order of arrival and lets nobody overtake a request "
    "that waits for KV blocks: the lack of blocks excuses it; a refused item does not",
    "pass-uses-budget": "one that ends a chunk early for its own good: as far before a refused "
    "item as its drafter reads, at a block boundary, before a whole item or the reserved end of a "
    "prefill. The shortest of these is asked for, and where a victim's tokens may have come back "
    "after a request's turn, they count as used; who is not admitted behind one that lacks tokens "
    "or KV blocks, or in a pass that had to preempt, is let pass",
    "threshold-kept": "one that lets a prefill run freely while nobody else is there, as 0.33.0 "
    "does; one that runs on to the end of a whole item longer than the threshold; one that pads a "
    "decode with drafts: all are let pass",
    "reservation-kept": "one that runs an unreserved chunk where a reserved one would be empty, or "
    "would split a whole item or end inside a block: let pass",
}
"""By the id of a claim on runs: the healthy engine that comes closest to breaking it."""
