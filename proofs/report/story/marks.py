"""Where a contradiction is marked, and in which words."""

from __future__ import annotations

from proofs.report.story.reasons import Words
from proofs.report.story.timeline import Mark, StepRow
from spec.record.prompts import Prompts
from spec.record.run_findings import LoopFinding

_IN_CACHE = {
    "slots-conserved",
    "worker-bounded",
    "views-agree",
    "evicted-not-live",
    "released",
    "no-idle-references",
    "dropped-in-update",
    "held-until-last-use",
    "freed-not-needed",
}
"""Claims about the cache and its book rather than about positions."""

_WORDS = {
    "no-stall": "nothing can change any more",
    "no-thrash": "back where it was",
    "boundary-miss-tolerated": "raises, though {} lies at the boundary",
    "target-resident": "reads {}, which is not there",
    "drafter-resident-or-boundary": "reads {} inside the range, and it is not there",
    "need-agrees": "reads {}, which nobody asked for",
    "item-whole": "ends inside {}",
    "held-until-last-use": "nobody holds {}, and a row is still to be read",
    "freed-not-needed": "{} let go too early",
    "boundary-used-when-resident": "{} is there and is not read",
    "interior-miss-raises": "{} is missing, and nothing says so",
    "payload-available": "{} is to be encoded without its raw data",
    "evicted-not-live": "told to drop what is in the book",
    "worker-bounded": "more rows on the worker than the cache has",
    "work-conserving": "could run, and is held up",
    "released": "has ended, and still holds a reference",
    "no-idle-references": "does not run, and still holds a reference",
}


_PASSED_OVER = "reads {}, which was given room and then passed over"


def mark_of(finding: LoopFinding | None, row: StepRow, prompts: Prompts, words: Words) -> Mark:
    """The mark in a row.

    Args:
        finding: what the run contradicts; ``None`` where the step alone is to be marked.
        row: the step.
        prompts: features at the time.
        words: names.
    """
    if finding is None:
        return Mark(None, None, None, in_cache=False, text="differs here")
    request, feature = finding.request, finding.feature
    span = None
    if request is not None and feature is not None:
        one = prompts.features(request)[feature]
        span = (one.offset, one.end)
    if request is not None and span is None:
        span = next((lane.processed for lane in row.lanes if lane.request == request), None)
        if span is not None and span[0] == span[1]:
            span = (span[0], span[0] + 1)
    in_cache = finding.claim in _IN_CACHE
    text = finding.mechanism
    if finding.claim == "slots-conserved":
        text = _slots(finding, row)
    elif finding.claim in _WORDS:
        named = _WORDS[finding.claim]
        if "{}" not in named:
            text = named
        elif request is not None and feature is not None:
            if finding.claim == "need-agrees" and (request, feature) in row.passed_over:
                named = _PASSED_OVER
            text = named.format(words.letter(request, feature))
    return Mark(request, feature, span, in_cache, text)


def _slots(finding: LoopFinding, row: StepRow) -> str:
    cache = row.cache
    if cache.num_free != cache.size - cache.num_taken:
        return f"counts {cache.num_free} free, and {cache.size - cache.num_taken} are"
    if cache.room != cache.true_room:
        return f"counts {cache.room} free or freeable, and {cache.true_room} are"
    return finding.mechanism
