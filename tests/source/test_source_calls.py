"""Which rule a release schedules encoder inputs by: known ones are told, broken ones are none."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from impl.vllm.launch.source import cache_folder, unpacked
from proofs.source.code.recorders import OVERRIDES
from proofs.source.code.release import ReleaseSource
from proofs.source.passes import call_scenario
from proofs.source.passes import which_rule as calls
from proofs.source.passes.call_rule import KNOWN_RULES
from proofs.source.passes.which_rule import scheduled_inputs_piece
from proofs.symbolic.exploration import Exploration
from spec.verdict import Verdict
from tests.support.fake_scheduler import write_scheduling_release


def _release(tmp_path: Path, old: str = "", new: str = "") -> ReleaseSource:
    return ReleaseSource(write_scheduling_release(tmp_path, old, new), OVERRIDES)


def test_right_scheduling_equals_a_rule(tmp_path: Path) -> None:
    """Wrong: code that was written apart from the rule, and is right, is called different."""
    piece = scheduled_inputs_piece(_release(tmp_path))
    assert piece.verdict is Verdict.PROVED
    assert piece.detail == "a chunk ends at a refused feature, and at a whole item"
    assert piece.z3 == piece.cvc5 == "unsat"
    assert piece.counts.paths
    assert not piece.counts.unfinished


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        # Harmless to every claim: an item is encoded of which no row is left to read.
        ("max(first - position.offset, 0)", "0", "A[0,2): 1 asked from 1 on"),
        # Harmless: a row that is read is not read in this chunk.
        ("min(seen_to - position.offset, position.length)", "position.length", "A[0,2): 1 asked"),
        # A request that runs nothing takes a reference.
        ("num_new_tokens == 0 or", "False or", "0 asked from 0 on, shift 1"),
        ("and decoder_only", "", "an encoder-decoder model"),
        ("first > 0 and not", "not", "an encoder-decoder model"),
        ("names.add(name)", "pass", "A[0,1) A[1,2): "),
        ("budget -= position.get_num_embeds()", "pass", "A[0,1): 1 asked from 0 on"),
        ("rows += position.get_num_embeds()", "rows += 0", "A[0,1) B[1,2): "),
        ("loaded.append(i)", "chosen.append(i)", "a store"),
        ("last = min(last, max(position.offset, first))", "pass", "A[0,1): 1 asked from 0 on"),
        ("names.add(name)", "names[name]", "A[0,1): 1 asked from 0 on"),
    ],
)
def test_broken_scheduling_equals_none(tmp_path: Path, old: str, new: str, shown: str) -> None:
    """Wrong: a rule that does not look at a duty of the scheduling."""
    piece = scheduled_inputs_piece(_release(tmp_path, old, new), KNOWN_RULES[1:2])
    assert piece.verdict is Verdict.REFUTED
    assert shown in piece.detail


def test_unknown_scheduling_equals_nothing(tmp_path: Path) -> None:
    """Wrong: what is not modelled passes for a difference, or for a proof."""
    changed = _release(tmp_path, "book.can_allocate(request, i,", "book.fits(request, i,")
    piece = scheduled_inputs_piece(changed)
    assert piece.verdict is Verdict.UNKNOWN
    assert "asked for fits" in piece.detail


def test_an_unfinished_exploration_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong: paths that were not run pass for a difference."""
    monkeypatch.setattr(call_scenario, "Exploration", partial(Exploration, path_budget=3))
    piece = scheduled_inputs_piece(_release(tmp_path))
    assert piece.verdict is Verdict.UNKNOWN
    assert piece.detail == "paths are unfinished"


def test_a_difference_that_does_not_replay_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong: a difference that only the solvers have seen."""
    right = _release(tmp_path / "right")
    call = calls.call_scheduling

    def of_right(_: ReleaseSource, given: Any) -> Any:
        return call(right, given)

    broken = _release(tmp_path / "broken", "max(first - position.offset, 0)", "0")
    monkeypatch.setattr(calls, "call_scheduling", of_right)
    piece = scheduled_inputs_piece(broken, KNOWN_RULES[1:2])
    assert piece.verdict is Verdict.ERROR
    assert "does not replay" in piece.detail


@pytest.mark.vllm
@pytest.mark.parametrize(("name", "index"), [("0.23.0", 4), ("0.24.0", 4), ("0.33.0", 0)])
def test_releases_equal_their_rules(name: str, index: int) -> None:
    """Wrong: a release whose encoder inputs are scheduled otherwise than is recorded of it."""
    source = unpacked(cache_folder(), name)
    if source is None:
        pytest.skip(f"vLLM {name} IS NOT HERE, so its rule was not read; run `make vllm`")
    piece = scheduled_inputs_piece(ReleaseSource(source.package, OVERRIDES))
    assert piece.verdict is Verdict.PROVED
    assert piece.detail == f"a chunk {KNOWN_RULES[index].words}"
