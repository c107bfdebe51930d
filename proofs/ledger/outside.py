"""Where releases leave the relation: the recorded differences as a table for people."""

from __future__ import annotations

import json
from typing import Any

from proofs.recorded import FOLDER

RECORDED = FOLDER / "relation.json"

MEANING = {
    "advance: looks-through-the-window": "a feature that the pass reads was passed over, or a "
    "further occurrence of an item took no reference",
    "advance: keeps-items-whole": "a chunk ends inside an item although chunking of items is off",
    "apply: announces-what-left": "a notice names an entry that is back in the book",
    "apply: starts-with-raw-data": "a request that starts again is sent without its raw data",
    "apply: tries-come-to-an-end": "a waiting request that does not run keeps what it took",
    "keep: keeps-only-what-is-needed": "a reference is held past the feature's end",
    "let-go: lets-go-what-progress-passed": "tokens counted in advance pass for progress",
    "observe: state.held": "the reference goes with another occurrence of the item",
    "observe: state.others": "who pauses keeps its references, or another occurrence loses one",
    "observe: state.entry": "an entry stays that was to be encoded for a victim of the same pass",
    "observe: state.free": "slots are credited again, or held by an entry that should be gone",
}
"""What each difference means."""

FOLLOWS = {
    "end-pass: ends-what-was-applied",
    "observe: state.freeable",
    "observe: state.idle_rows",
    "observe: state.referenced_rows",
}
"""What differs since something above does."""


def rows() -> list[list[str]]:
    """For each difference its meaning and the releases that show it, in the order recorded."""
    releases: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))["releases"]
    found: list[list[str]] = []
    for difference, meaning in MEANING.items():
        showing = [
            release
            for release, shown in releases.items()
            if any(difference in some for some in shown["outside"].values())
        ]
        found.append([f"`{difference}`", meaning, ", ".join(showing)])
    inside = [
        f"{release}: {len(shown['inside'])} of {len(shown['inside']) + len(shown['outside'])}"
        for release, shown in releases.items()
    ]
    found.append(
        ["runs inside", "recorded scenarios of which every step lies in it", ", ".join(inside)]
    )
    return found
