"""In which conjuncts the runs of releases leave the relation, as it is recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proofs.ledger.outside import FOLLOWS, MEANING, RECORDED, rows
from tests.recorders.record_relation import FILE, RELEASES, differences_apart
from tests.support.releases import require_release

FIXED_LATER = {
    "advance: looks-through-the-window": "0.32.0",
    "apply: announces-what-left": "0.28.0",
    "keep: keeps-only-what-is-needed": "0.33.0",
    "observe: state.held": "0.29.0",
    "let-go: lets-go-what-progress-passed": "0.24.0",
}
"""The first release without each difference; each is a change that is publicly known."""


def _recorded() -> dict[str, Any]:
    releases: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))["releases"]
    return releases


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


@pytest.mark.vllm
@pytest.mark.parametrize("release", ["0.23.0", "0.33.0"])
def test_a_release_leaves_the_relation_as_recorded(release: str) -> None:
    """Wrong: a release is said to lie in the proof, or outside it, and does not."""
    require_release(release)
    # Scenarios that were recorded since are for the next recording of this file.
    recorded, shown = _recorded()[release], differences_apart(release)
    names = {*recorded["inside"], *recorded["outside"]}
    assert len(names) > 35
    assert [name for name in shown["inside"] if name in names] == recorded["inside"]
    outside = {name: some for name, some in shown["outside"].items() if name in names}
    assert outside == recorded["outside"]


@pytest.mark.parametrize("difference", FIXED_LATER)
def test_a_difference_goes_with_its_fix(difference: str) -> None:
    """Wrong: a conjunct that blames releases for something else than what they changed."""
    recorded = _recorded()
    assert recorded.keys() == set(RELEASES)
    assert RECORDED == FILE
    differing = {
        release
        for release, found in recorded.items()
        if any(difference in shown for shown in found["outside"].values())
    }
    assert differing
    assert max(map(_number, differing)) < _number(FIXED_LATER[difference])


def test_every_difference_has_a_meaning() -> None:
    """Wrong: a table for people that leaves out what a release does."""
    shown = {
        difference
        for found in _recorded().values()
        for some in found["outside"].values()
        for difference in some
    }
    assert MEANING.keys() <= shown <= MEANING.keys() | FOLLOWS
    assert all(row[2] for row in rows())


def test_most_runs_of_the_newest_release_lie_in_the_relation() -> None:
    """Wrong: theorems that speak of no real engine.

    What was found in that very release is there because it goes wrong, and does not count.
    """
    newest = _recorded()[RELEASES[-1]]
    inside, outside = (
        [name for name in newest[part] if name.startswith("scenarios/")]
        for part in ("inside", "outside")
    )
    assert len(inside) > 10 * len(outside)
