"""The ablation matrix: theorems, model and reference say the same of every cell."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from proofs.ablate import decide as decide_module
from proofs.ablate import evidence as evidence_module
from proofs.ablate.cells import Cell, Scheduling, cells
from proofs.ablate.confirm import confirm
from proofs.ablate.decide import Decided, DisagreementError, Proof, Shown, decide
from proofs.ablate.evidence import Evidence, UnfinishedRunError, evidence, scope
from proofs.ablate.matrix import decided_cells, to_json
from proofs.commands.main import main
from proofs.theorems.groups import all_obligations
from spec.model.rules import ModelRules
from spec.record.document import load
from tests.recorders.record_ablation import recorded
from tests.support.html_pages import text_of
from tests.support.results_files import read_results

PLAIN = Scheduling(ModelRules(), 1)
SHIFTED = Scheduling(ModelRules(cut_shift="shift"), 1)
RELEASE_0_23 = Cell(SHIFTED, 1, False)
RELEASE_0_24 = Cell(Scheduling(ModelRules(margin=1, cut_shift="shift"), 1), 1, True)
RELEASE_0_33 = Cell(PLAIN, 1, True)


@pytest.fixture(scope="module")
def plain() -> Evidence:
    return evidence(PLAIN, 1)


@pytest.fixture(scope="module")
def shifted() -> Evidence:
    return evidence(SHIFTED, 1)


def _choice(cell: Cell) -> tuple[object, ...]:
    return tuple(cell.to_json().values())


def test_matrix_has_every_choice_once() -> None:
    """A choice left out would be one nobody knows the answer of."""
    found = {_choice(cell) for cell in cells()}
    assert len(found) == 2 * 2 * 4 * 4 * 2 * 3
    kept = [tuple(c[name] for name in RELEASE_0_33.to_json()) for c in recorded()["cells"]]
    assert sorted(kept, key=repr) == sorted(found, key=repr)


def test_decided_as_recorded() -> None:
    """The README shows the record; it must be what the engines say."""
    few = [
        cell
        for cell in cells()
        if (cell.scheduling.scheduler_lookahead, cell.gather_lookahead) == (1, 1)
        and cell.scheduling.rules.reservation == "yielding"
    ]
    found = to_json(list(decided_cells(few)))["cells"]
    by_choice = {tuple(c[name] for name in few[0].to_json()): c for c in recorded()["cells"]}
    assert found == [by_choice[_choice(cell)] for cell in few]


def test_every_theorem_named_is_an_obligation() -> None:
    """An answer that rests on a theorem nobody proves would be no answer."""
    theorems = {obligation.name for obligation in all_obligations()}
    named = {
        theorem
        for cell in recorded()["cells"]
        for answer in (cell["safety"], cell["progress"])
        for theorem in answer.get("theorems", ())
    }
    assert named
    assert named <= theorems


def test_counterexample_needs_no_search_that_stopped_at_a_miss(plain: Evidence) -> None:
    """Progress is judged where a miss ends nothing: a miss that raises is no stall."""
    decided = decide(replace(RELEASE_0_33, tolerates_boundary=False), plain)
    assert isinstance(decided.safety, Shown)
    assert decided.safety.claim == "boundary-miss-tolerated"
    assert isinstance(decided.progress, Proof)


def test_margin_and_shifted_cut_stop_requests(shifted: Evidence) -> None:
    """What 0.24 to 0.32 did is safe and stops; what 0.33.0 does is safe and gets on."""
    for cell in (RELEASE_0_24, RELEASE_0_23):
        found = evidence(cell.scheduling, 1)
        decided = decide(cell, found)
        assert isinstance(decided.safety, Proof)
        assert isinstance(decided.progress, Shown)
        assert confirm(decided) == 1
    assert shifted.boundary is None


def test_safe_cell_with_a_miss_is_a_disagreement(plain: Evidence) -> None:
    """A theorem that does not fit the code must not win over a run."""
    wrong = replace(plain, interior=scope(1, 1)[0])
    with pytest.raises(DisagreementError, match="is safe"):
        decide(RELEASE_0_33, wrong)


def test_unproved_cell_without_a_run_is_a_disagreement(plain: Evidence) -> None:
    """Where no theorem speaks, silence of the search must not pass for one."""
    with pytest.raises(DisagreementError, match="no theorem"):
        decide(replace(RELEASE_0_33, tolerates_boundary=False), replace(plain, boundary=None))


def test_reference_that_does_not_repeat_is_a_disagreement() -> None:
    """A counterexample of the model alone is not shown to anybody."""
    harmless = scope(1, 1)[0]
    for safety, progress in (
        (Shown("drafter-resident-or-boundary", harmless), Proof(("x",))),
        (Proof(("x",)), Shown("no-stall", harmless)),
    ):
        with pytest.raises(DisagreementError, match="the reference breaks nothing"):
            confirm(Decided(RELEASE_0_33, safety, progress))


def test_run_that_does_not_end_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run cut off by a limit must not count as one that gets on."""
    monkeypatch.setattr(evidence_module, "MAX_PASSES", 0)
    with pytest.raises(UnfinishedRunError):
        evidence(PLAIN, 1)


def test_command_tells_a_few_cells(tmp_path: Path) -> None:
    """The one cell that a reviewer asks about, with its scenario to replay."""
    asked = "--margin 1 --shift 1 --look-ahead 1 --cut shifted --reservation off --tolerance on"
    json_file, folder = tmp_path / "cells.json", tmp_path / "scenarios"
    result = CliRunner().invoke(
        main, ["ablate", *asked.split(), "--json", str(json_file), "--report", str(folder)]
    )
    assert result.exit_code == 0, result.output
    assert "no-stall broken by A[0," in result.output
    assert "proved by reading.shift-covers-the-drafter" in result.output
    assert len(read_results(json_file, "ablate")["details"]["cells"]) == 1
    (scenario,) = folder.glob("*/scenario.json")
    assert {path.name for path in scenario.parent.iterdir()} >= {"report.html", "trace.json"}
    assert load(scenario).kind == "scenario"


def test_a_page_names_the_cells_it_is_about(tmp_path: Path) -> None:
    """Wrong: lines of the index look alike, and nobody can run again what a page shows."""
    asked = "--margin 0 --shift 1 --cut plain --reservation off --tolerance on"
    result = CliRunner().invoke(main, ["ablate", *asked.split(), "--report", str(tmp_path)])
    assert result.exit_code == 0, result.output
    index = text_of((tmp_path / "index.html").read_text("utf-8"))
    pages = [text_of(page.read_text("utf-8")) for page in tmp_path.glob("*/report.html")]
    first = re.compile(r"0 plain off on, 1:\d: the reference with")
    assert len(first.findall(index)) == len(pages) > 0
    for page in pages:
        assert first.search(page)
        assert re.search(r"the reference repeats it: 0 plain off on, 1:\d", page)
        (command,) = set(re.findall(r"residency ablate (--margin .+? --tolerance on)", page))
        again = CliRunner().invoke(main, ["ablate", *command.split()])
        assert again.exit_code == 0, again.output
        assert "broken by" in again.output


@pytest.mark.parametrize("arguments", [["--shift", "4"], ["--cut", "oblique"]])
def test_command_refuses_other_choices(arguments: list[str]) -> None:
    """A choice that is not in the matrix is wrong use, not an empty table."""
    assert CliRunner().invoke(main, ["ablate", *arguments]).exit_code == 2


def test_command_fails_where_engines_disagree(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disagreement is an error of ours and must be loud."""
    monkeypatch.setattr(decide_module, "progress_theorems", lambda scheduling: ("progress.x",))
    chosen = "--margin 1 --shift 0 --look-ahead 0 --cut plain --reservation off --tolerance on"
    result = CliRunner().invoke(main, ["ablate", *chosen.split()])
    assert result.exit_code == 5
    assert "ERROR" in result.output
