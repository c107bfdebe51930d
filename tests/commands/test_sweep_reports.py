"""What a sweep writes: pages for what it found, files for other tools.

The reference stands in the place of a vLLM.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from impl.target import LoopTarget
from impl.targets.runs import ReferenceLoop
from impl.vllm.launch.source import Source
from proofs.commands.main import main
from proofs.drive.recorded import DEFAULT_FOLDER, INDEX
from proofs.report.pages.reproduce import Links
from proofs.run.targets import VllmName
from tests.support.html_pages import text_of
from tests.support.reference_as_vllm import replace_all, run_here
from tests.support.results_files import read_results

FAULT = "no-boundary-tolerance"
MISSES = "boundary-never-encoded"
NEEDED = f"{MISSES},{FAULT}"
"""What shows the recorded scenario of the fault: the item is missing, and the miss raises."""


@pytest.fixture(scope="module")
def one_recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the one recorded fault."""
    folder = tmp_path_factory.mktemp("recorded")
    index = json.loads((DEFAULT_FOLDER / INDEX).read_text())
    (one,) = (fault for fault in index["faults"] if fault["name"] == FAULT)
    (folder / INDEX).write_text(json.dumps({"schema": 1, "faults": [one]}))
    (folder / one["scenario"]).write_text((DEFAULT_FOLDER / one["scenario"]).read_text())
    return folder


def sweep(
    monkeypatch: pytest.MonkeyPatch, recorded: Path, releases: dict[str, str], *words: object
) -> Result:
    """A sweep over releases that are the reference with the faults named."""
    replace_all(monkeypatch.setattr)
    places = {f"vllm {number}": faults for number, faults in releases.items()}

    def make(vllm: VllmName) -> LoopTarget:
        return ReferenceLoop([fault for fault in places[vllm.source.name].split(",") if fault])

    for place in ("proofs.releases.sweep.make_target", "proofs.drive.jobs.make_target"):
        monkeypatch.setattr(place, make)
    monkeypatch.setattr("proofs.drive.drive.make_target", make)
    monkeypatch.setattr("proofs.releases.sweep.unrecognised", lambda target: {})
    monkeypatch.setattr("proofs.commands.sweep.run_jobs", run_here)
    names = tuple(
        VllmName(Source(f"vllm {number}", Path(), Path(), number, "d")) for number in releases
    )
    monkeypatch.setattr("proofs.commands.sweep.named_vllms", lambda *_: names)
    given = ("sweep", "--recorded", recorded, "--examples", 0, *words)
    return CliRunner().invoke(main, [str(word) for word in given])


def pages(folder: Path) -> list[str]:
    """The places of the pages."""
    return sorted(p.parent.relative_to(folder).as_posix() for p in folder.rglob("report.html"))


@pytest.fixture(scope="module")
def searched(
    one_recorded: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Result, dict[str, str]]:
    """A search of one release with the fault, and the files that it wrote."""
    folder = tmp_path_factory.mktemp("searched")
    words = ("--examples", 40, "--json", folder / "kept.json", "--junit", folder / "j.xml")
    with pytest.MonkeyPatch.context() as patch:
        done = sweep(patch, one_recorded, {"0.24.0": FAULT}, *words)
    return done, {file.name: file.read_text() for file in folder.iterdir()}


def test_a_fault_that_came_back_has_a_page(
    monkeypatch: pytest.MonkeyPatch, one_recorded: Path, tmp_path: Path
) -> None:
    """Wrong: a table that turns red, and nothing of the run to look at."""
    folder = tmp_path / "out"
    done = sweep(monkeypatch, one_recorded, {"0.33.0": NEEDED}, "--report", folder)
    assert done.exit_code == 1, done.output
    (name,) = pages(folder)
    assert name.startswith("boundary-miss-tolerated-")
    # The reference stands in for the release, so that there is no test for its suite.
    assert {p.name for p in (folder / name).iterdir()} >= set(Links().all) - {Links().test}
    text = text_of((folder / name / "report.html").read_text())
    assert "residency replay scenario.json --target vllm --release 0.33.0" in text
    (failed,) = ElementTree.parse(folder / "junit.xml").iter("failure")
    assert "recorded as gone and showed" in str(failed.get("message"))


def test_a_fault_where_it_is_recorded_has_none(
    monkeypatch: pytest.MonkeyPatch, one_recorded: Path, tmp_path: Path
) -> None:
    """Wrong: pages about what everybody knows, and no end of them."""
    folder, junit = tmp_path / "out", tmp_path / "j.xml"
    words = ("--report", folder, "--junit", junit)
    done = sweep(monkeypatch, one_recorded, {"0.23.0": NEEDED}, *words)
    assert done.exit_code == 0, done.output
    assert pages(folder) == []
    (case,) = ElementTree.parse(junit).iter("testcase")
    assert case.get("classname") == f"recorded fault {FAULT}"
    assert not [child.tag for child in case]


def test_each_release_has_its_pages_and_one_lists_all(
    monkeypatch: pytest.MonkeyPatch, one_recorded: Path, tmp_path: Path
) -> None:
    """Wrong: one release in the place of another, or what the search found on no page."""
    folder, file, sarif = tmp_path / "out", tmp_path / "kept.json", tmp_path / "s.sarif"
    releases = {"0.24.0": FAULT, "0.33.0": NEEDED}
    words = ("--examples", 40, "--json", file, "--report", folder, "--sarif", sarif)
    done = sweep(monkeypatch, one_recorded, releases, *words)
    assert done.exit_code == 1, done.output
    found = pages(folder)
    assert {name.split("/")[0] for name in found} == {"vllm-0.24.0", "vllm-0.33.0"}
    index = (folder / "index.html").read_text()
    assert all(f'href="{name}/report.html"' in index for name in found)
    kept = read_results(file, "sweep")["targets"]
    searched = {violation["fingerprint"] for entry in kept for violation in entry["violations"]}
    assert searched
    assert searched <= {name.rpartition("-")[2] for name in found}
    assert len(json.loads(sarif.read_text())["runs"]) >= 1
    # What the file keeps is enough for the pages.
    again = tmp_path / "again"
    resumed = sweep(monkeypatch, one_recorded, releases, *words[:-4], "--report", again)
    assert resumed.exit_code == 1, resumed.output
    assert pages(again) == found


def test_what_does_not_show_again_is_said(
    monkeypatch: pytest.MonkeyPatch,
    one_recorded: Path,
    searched: tuple[Result, dict[str, str]],
    tmp_path: Path,
) -> None:
    """Wrong: a page less than the table has violations, in silence."""
    file = tmp_path / "kept.json"
    words = ("--examples", 40, "--json", file)
    first, files = searched
    assert first.exit_code == 1, first.output
    file.write_text(files["kept.json"])
    fixed = sweep(monkeypatch, one_recorded, {"0.24.0": ""}, *words, "--report", tmp_path / "out")
    assert "no report on boundary-miss-tolerated: it did not show again" in fixed.output
    assert fixed.exit_code == 5, fixed.output


def test_another_violation_does_not_pass_for_the_one_that_was_found(
    monkeypatch: pytest.MonkeyPatch,
    one_recorded: Path,
    searched: tuple[Result, dict[str, str]],
    tmp_path: Path,
) -> None:
    """Wrong: a run that is not deterministic has a page under the name of another fault."""
    file, folder = tmp_path / "kept.json", tmp_path / "out"
    words = ("--examples", 40, "--json", file)
    kept = json.loads(searched[1]["kept.json"])
    found = [violation for entry in kept["targets"] for violation in entry["violations"]]
    for violation in found:
        violation["fingerprint"], violation["mechanism"] = "0" * 12, "in another way"
    file.write_text(json.dumps(kept))
    again = sweep(monkeypatch, one_recorded, {"0.24.0": FAULT}, *words, "--report", folder)
    assert again.exit_code == 5, again.output
    assert found
    assert "it did not show again; the run now shows another one: " in again.output
    assert pages(folder) == []


def test_stopping_early_keeps_what_is_done(
    monkeypatch: pytest.MonkeyPatch, one_recorded: Path, tmp_path: Path
) -> None:
    """Wrong: Ctrl-C is not looked at while runs are made again, or ends in a verdict."""
    asked = iter([False, False])
    stops = nullcontext(lambda: next(asked, True))
    monkeypatch.setattr("proofs.dossiers.sweep.interrupts", lambda: stops)
    folder = tmp_path / "out"
    releases = {"0.32.0": NEEDED, "0.33.0": NEEDED}
    done = sweep(monkeypatch, one_recorded, releases, "--report", folder)
    assert done.exit_code == 130, done.output
    assert len(pages(folder)) == 1
    assert "ERROR" not in done.output


def test_a_searched_claim_is_told_to_build_servers(
    searched: tuple[Result, dict[str, str]],
) -> None:
    """Wrong: a build server that is green whatever the search found."""
    failed = {
        (case.get("classname"), case.get("name"))
        for case in ElementTree.fromstring(searched[1]["j.xml"]).iter("testcase")
        if case.find("failure") is not None
    }
    assert ("boundary-miss-tolerated", "V1 sync") in failed
    assert ("boundary-miss-tolerated", "V2 async") in failed
