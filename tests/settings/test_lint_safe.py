"""Which theorems a verdict "cannot stall" rests on: those for what is there, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proofs.settings.judge import Setup, judge
from proofs.settings.stuck.safe import theorems
from proofs.settings.stuck.settings import Settings
from proofs.settings.verdict_text import ASSUMPTIONS, WHOLE_BLOCKS, lines_of
from proofs.theorems.groups import all_obligations
from spec.rules.releases import RELEASES, ReleaseRules, rules_of
from spec.verdict import Verdict
from tests.support.lint_grid import SWITCHES, reference_cells, release_cells

TEXT = Settings(16, 16, 16, num_requests=1, items_per_prompt=2, longest_prompt=20)
ITEMS = replace(TEXT, largest_item=2, largest_rows=2)
EAGLE = replace(ITEMS, shift=1, num_drafts=1)
MODULES = replace(ITEMS, shift=2, num_drafts=2)

CASES = {
    # theorem: release, settings under which it counts, and those that differ in one fact.
    "limited-chunk-not-empty": ("0.33.0", replace(TEXT, threshold=4), TEXT),
    "boundary-chunk-not-empty": ("0.33.0", replace(TEXT, block_alignment=4), TEXT),
    "item-never-fits": ("0.33.0", ITEMS, TEXT),
    "cut-chunk-not-empty": ("0.33.0", ITEMS, TEXT),
    "neighbours-go-on": ("0.32.0", EAGLE, ITEMS),
    "rows-in-reach": ("0.32.0", EAGLE, ITEMS),
    "aligned-neighbours-go-on": ("0.27.1", replace(ITEMS, block_alignment=4), ITEMS),
    "spared-neighbours-go-on": ("0.25.0", replace(ITEMS, block_alignment=4), ITEMS),
    "budget-goes-on": ("0.32.0", replace(EAGLE, encoder_budget=15), EAGLE),
    "aligned-budget-goes-on": (
        "0.27.1",
        replace(ITEMS, block_alignment=4, encoder_budget=15),
        replace(ITEMS, block_alignment=4),
    ),
    "reservation-goes-on": ("0.33.0", MODULES, EAGLE),
    "short-chunks-go-on": ("0.33.0", MODULES, EAGLE),
    "boundary-goes-on": ("0.33.0", replace(MODULES, block_alignment=4), MODULES),
    "whole-item-goes-on": ("0.33.0", replace(ITEMS, whole_items=True), ITEMS),
    "padded-decode-breaks": ("0.33.0", replace(EAGLE, threshold=4), EAGLE),
    "others-leave-room": ("0.32.0", replace(EAGLE, num_requests=2), EAGLE),
    "first-of-the-refused-has-room": ("0.33.0", replace(EAGLE, num_requests=2), EAGLE),
}


@pytest.mark.parametrize("name", CASES)
def test_a_theorem_is_named_for_the_fact_that_needs_it(name: str) -> None:
    """Wrong: a verdict rests on a theorem that it does not name, or names one it does not need."""
    release, needs, does_not = CASES[name]
    rules = rules_of(release)
    for settings in (needs, does_not):
        assert judge(Setup(settings, rules, release)).verdict is Verdict.PROVED, settings
    assert f"progress.{name}" in theorems(needs, rules)
    assert f"progress.{name}" not in theorems(does_not, rules)


def test_text_without_a_drafter_needs_only_that_passes_count() -> None:
    """Wrong: the list is the same for every engine, and says nothing of this one."""
    assert theorems(TEXT, ReleaseRules()) == ("progress.update-raises-progress",)


def test_what_is_taken_for_granted_is_told() -> None:
    """Wrong: an engine whose chunks stop at more places is called safe without a word."""
    lines = {
        block: list(lines_of(setup, judge(setup), ()))[-1]
        for block in (0, 4)
        for setup in [Setup(replace(MODULES, block_alignment=block), rules_of("0.33.0"), "0.33.0")]
    }
    assert [WHOLE_BLOCKS in lines[block] for block in (0, 4)] == [False, True]
    assert all(name in line for line in lines.values() for name in ASSUMPTIONS)


def test_every_theorem_by_which_things_go_on_is_used() -> None:
    """Wrong: something is proved to go on, and no verdict rests on it."""
    cells = reference_cells(1, 20 * len(SWITCHES))
    cells += [cell for release in RELEASES for cell in release_cells(release, 3, 60)]
    used = {
        name
        for cell in cells
        if cell.judged().verdict is Verdict.PROVED
        for name in theorems(cell.settings, cell.rules)
    }
    ends = ("-go-on", "-goes-on", "-leave-room", "-has-room")
    proved = {o.name for o in all_obligations() if o.name.startswith("progress.")}
    assert used <= proved
    assert {name for name in proved if name.endswith(ends)} <= used
