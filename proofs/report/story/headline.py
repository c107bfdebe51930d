"""The verdict in one sentence, for somebody who reads nothing else."""

from __future__ import annotations

from proofs.describe.words import counted
from proofs.report.story.timeline import StepRow, Timeline
from spec.record.run_findings import LoopFinding

_ABOUT_ITEM = {
    "boundary-miss-tolerated": "The drafter looks one step past the chunk, at {}, which is not "
    "encoded yet: the gather raises, although such a miss is to be skipped",
    "target-resident": "The model reads {}, and its encoder output is not on the worker: {why}",
    "drafter-resident-or-boundary": "The drafter reads {} inside the processed range, and its "
    "encoder output is not on the worker: {why}",
    "need-agrees": "{} is read in a pass in which nobody asked for it: {why}",
    "item-whole": "{} is split although items are to be kept whole: {why}",
    "held-until-last-use": "Nobody holds {} any more while it is still to be read: {why}",
    "freed-not-needed": "{} is let go while progress can still fall back into it",
    "boundary-used-when-resident": "{} is on the worker, and the drafter skips it",
    "payload-available": "{} is to be encoded, and the worker does not have its raw data",
    "fresh-tensor": "Who reads {} gets another tensor than its own: {why}",
    "interior-miss-raises": "{} is missing inside the processed range: {why}",
}


def headline(finding: LoopFinding, timeline: Timeline) -> str:
    """The sentence, without its full stop.

    Args:
        finding: the violation.
        timeline: its picture.
    """
    row = timeline.rows[timeline.contradiction]
    assert isinstance(row, StepRow)
    item = _item(finding, timeline)
    why = finding.mechanism.removeprefix("target: ").removeprefix("drafter: ")
    match finding.claim:
        case "no-stall" if finding.loop is not None:
            return _stall(finding, timeline, row)
        case "no-thrash":
            return f"The engine turns in a circle for ever, and nobody gets further: {why}"
        case "slots-conserved" if row.cache.drifted:
            return _drift(row)
        case "worker-bounded":
            return (
                f"The worker holds {row.cache.num_on_worker} rows of encoder outputs, and the "
                f"cache has room for {row.cache.size}"
            )
        case "work-conserving":
            return (
                f"{_subject(finding, timeline)} could run, and is held up by one that cannot: {why}"
            )
        case "pass-uses-budget":
            return f"{_subject(finding, timeline)} could run more, and the pass has it left: {why}"
        case "threshold-kept" | "reservation-kept":
            return f"{_subject(finding, timeline)} runs too many tokens at once: {why}"
    pattern = _ABOUT_ITEM.get(finding.claim)
    if (finding.request, finding.feature) in row.passed_over:
        if finding.claim == "need-agrees":
            pattern = "{} was given room and then passed over, and is read in the same pass"
        elif why == "feature never asked for":
            why = "it was given room and then passed over"
    if pattern is not None and item:
        return pattern.format(item, why=why)
    return f"In {row.title}, {why[0].lower()}{why[1:]}: {finding.observed}"


def _subject(finding: LoopFinding, timeline: Timeline) -> str:
    alone = len(timeline.tracks) == 1 and not timeline.num_hidden_requests
    return "The request" if alone else f"Request {finding.request}"


def _item(finding: LoopFinding, timeline: Timeline) -> str:
    if finding.request is None or finding.feature is None:
        return ""
    bar = timeline.bar(finding.request, finding.feature)
    if bar is None:
        return ""
    return f"{timeline.entries[bar.entry].letter}[{bar.span.start},{bar.span.end})"


def _stall(finding: LoopFinding, timeline: Timeline, row: StepRow) -> str:
    """Who stands where, and what it waits for that cannot come."""
    standing = {request: rest for request, *rest in row.standing}
    place = ""
    if finding.request in standing:
        _, computed, tokens = standing[finding.request]
        place = f" at {computed} of {tokens} tokens"
    why = finding.mechanism
    for kind in ("a running request ", "a waiting request "):
        why = why.removeprefix(kind)
    item = _item(finding, timeline)
    wanted = f"needed for {item}" if item else ""
    why = why.replace("encoder cache room held", f"cache room {wanted}, held".replace(" ,", ","))
    return f"{_subject(finding, timeline)} stops for ever{place}: it {why}"


def _drift(row: StepRow) -> str:
    cache = row.cache
    true_free = cache.size - cache.num_taken
    if cache.num_free != true_free:
        counts, what, true = cache.num_free, "free rows", true_free
    else:
        counts, what, true = cache.room, "rows that are free or can be freed", cache.true_room
    size = counted(cache.size, "row")
    sentence = f"In an encoder cache of {size} the book counts {counts} {what}"
    sentence += "" if counts > cache.size else f", and in truth there are {true}"
    return f"{sentence}: " + (
        "it will give away room that is not there" if counts > true else "room is lost"
    )
