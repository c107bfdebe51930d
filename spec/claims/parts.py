"""Claims taken apart: under which conditions one asks something, and what it asks then.

For a story that ends in a contradiction. Each condition was so in the run that broke the claim; the
last part is what the claim asks, and was not. Names in braces stand for the numbers of the run.
"""

from __future__ import annotations

_STARTS_PAST_THE_END = "begins at or past the processed end: {boundary}"
_DRAFTER_READS = "{feature} has a row in the drafter's window {drafter}"

PARTS: dict[str, tuple[str, ...]] = {
    "target-resident": (
        "{feature} has a row in the target's window {target}",
        "{feature} is on the worker",
    ),
    "drafter-resident-or-boundary": (
        _DRAFTER_READS,
        f"{{feature}} is on the worker, or {_STARTS_PAST_THE_END}",
    ),
    "boundary-miss-tolerated": (
        _DRAFTER_READS,
        "{feature} is not on the worker",
        f"{{feature}} {_STARTS_PAST_THE_END}",
        "the gather skips it and raises nothing",
    ),
    "item-whole": (
        "items are not to be split",
        "the range starts at or before {feature}: start {start} <= offset {offset}",
        (
            "it does not end inside {feature}: end {end} <= offset {offset} or end {end} >= the "
            "item's end {feature_end}"
        ),
    ),
    "worker-bounded": (
        "the worker holds {entries} (rows)",
        "rows held {on_worker} <= cache size {size}",
    ),
    "no-stall": (
        "nothing is in flight",
        "no event is still to come",
        "{request} is {status} at {computed} of {tokens} tokens, neither finished nor paused",
        "pass {first} changes the state",
    ),
    "no-thrash": (
        "no event comes in passes {first} to {last}",
        "no request gets further in them than it ever was",
        "the state after pass {last} is not the one before pass {first}",
    ),
}
"""Parts of claims whose sentence names numbers of a run; of the others the finding says it all."""

FREE_ROWS = "free rows = size {size} - taken {taken}; the book counts {free}"
FREEABLE_ROWS = "free or freeable rows = {true_room}; the book counts {room}"
"""What ``slots-conserved`` asks: the first of the two sums that is off."""
