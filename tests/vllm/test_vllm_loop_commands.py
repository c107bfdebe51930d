"""Checks, comparisons, replays and sweeps of the loop of real vLLMs: what they say and exit with.

All but the last tests put the reference in the place of a vLLM.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from impl.target import RUNNERS, LoopTarget, Runner
from impl.targets.runs import ReferenceLoop
from impl.tensors import TensorSettings
from impl.vllm.launch.source import Source, cache_folder, unpacked
from proofs.commands.main import main
from proofs.drive import jobs
from proofs.drive.recorded import DEFAULT_FOLDER, INDEX, Recorded, RecordedFault, load_recorded
from proofs.jobs.processes import run_jobs
from proofs.releases import search as vllm_check
from proofs.releases.against import (
    Behaviour,
    code_against,
    compare_findings,
    earlier_of,
    first_parting,
    load_earlier,
)
from proofs.releases.search import VllmReport, check_vllms
from proofs.releases.sweep import SweepJob, cells, deviations, searched, sweep_vllm
from proofs.releases.vllm_text import checked_vllm, print_vllm_report
from proofs.results.document import dumps, results_of
from proofs.results.outcome import Checked
from proofs.run.digest import digest
from proofs.run.record import record
from proofs.run.targets import NamedTargets, VllmName, named_vllms
from proofs.search.runs.draws import draw
from proofs.search.runs.results import LoopCheckSettings, LoopReport
from proofs.search.runs.search import run_loop_check
from proofs.search.runs.search_text import search_settings
from spec.errors import InputError
from spec.record.document import load
from spec.record.scenario import Scenario
from spec.record.steps import Step
from spec.verdict import Verdict, exit_code
from tests.recorders.record_scenarios import files
from tests.support.reference_as_vllm import run_here
from tests.support.releases import imported
from tests.support.scheduler_jobs import refusals

FAULT = "no-boundary-tolerance"
OTHER_FAULT = "held-until-last-use"
CLAIMS = ("boundary-miss-tolerated", "need-agrees", "held-until-last-use")
FEW = LoopCheckSettings(claims=CLAIMS, examples=40)


def never() -> bool:
    """Nobody asks to stop."""
    return False


# Comparing


def found_on(*faults: str) -> LoopReport:
    """What the search finds on the reference with faults."""
    return run_loop_check(ReferenceLoop(faults), FEW)


@pytest.fixture(scope="module")
def clean() -> LoopReport:
    """A search without findings."""
    return found_on()


@pytest.fixture(scope="module")
def faulty() -> LoopReport:
    """A search with a finding."""
    return found_on(FAULT)


def test_only_a_new_finding_is_a_failure(clean: LoopReport, faulty: LoopReport) -> None:
    """A pull request would be red for old faults, or green for a new one."""
    fingerprints = tuple(e.finding.fingerprint for e in faulty.counterexamples)
    assert fingerprints
    assert not clean.counterexamples
    new = compare_findings(faulty, earlier_of(clean, None), {}, {})
    there = compare_findings(faulty, earlier_of(faulty, None), {}, {})
    fixed = compare_findings(clean, earlier_of(faulty, None), {}, {})
    assert (new.new, new.there, new.fixed) == (fingerprints, (), ())
    assert (there.new, there.there, there.fixed) == ((), fingerprints, ())
    assert tuple(finding.fingerprint for finding in fixed.fixed) == fingerprints
    assert code_against(faulty, new) == 1
    assert code_against(faulty, there) == 0
    assert code_against(clean, fixed) == 0


def test_what_the_other_side_shows_too_is_not_new(clean: LoopReport, faulty: LoopReport) -> None:
    """The same fault told with another smallest scenario would be new, and the old one fixed."""
    shown = {e.finding.fingerprint: True for e in faulty.counterexamples}
    assert compare_findings(faulty, earlier_of(clean, None), shown, {}).new == ()
    assert compare_findings(clean, earlier_of(faulty, None), {}, shown).fixed == ()


def test_old_findings_do_not_hide_what_is_unknown(faulty: LoopReport) -> None:
    """What could not be judged would pass because something else is an old fault."""
    there = compare_findings(faulty, earlier_of(faulty, None), {}, {})
    first, *later = faulty.results
    for verdict in (Verdict.UNKNOWN, Verdict.ERROR, Verdict.VACUOUS):
        report = replace(faulty, results=(replace(first, verdict=verdict), *later))
        assert code_against(report, there) == exit_code([verdict])


def test_a_change_of_behaviour_without_a_finding_comes_first() -> None:
    """The first run that differs would be one whose violation is told anyway."""
    before = Behaviour({"V1": ["a", "b", None, "d"], "V2": ["a", "b", "c", "d"]}, {"V1": [1]})
    now = Behaviour({"V1": ["a", "x", "c", "x"], "V2": ["a", "b", "c"]}, {"V2": [0]})
    compared, differing, parting = first_parting(now, before)
    assert (compared, differing) == (6, 2)
    assert parting is not None
    assert (parting.number, parting.runner, parting.is_broken) == (3, "V1", False)
    only = replace(now, digests={"V1": ["a", "x"]})
    parting = first_parting(only, before)[2]
    assert parting is not None
    assert (parting.number, parting.is_broken) == (1, True)
    assert first_parting(before, before)[1:] == (0, None)


def test_a_digest_tells_runs_apart_and_overlooks_order() -> None:
    """Runs that differ would look the same, or equal ones different."""
    traces = (record(ReferenceLoop(), draw(FEW, n).scenario, "V1").trace for n in range(20))
    trace = next(
        trace
        for trace in traces
        if any(len(step.state.book.references) > 1 for step in trace.steps)
    )
    turned = tuple(
        replace(
            step,
            state=replace(
                step.state,
                book=replace(step.state.book, references=step.state.book.references[::-1]),
            ),
        )
        for step in trace.steps
    )
    assert any(turned_step != step for turned_step, step in zip(turned, trace.steps, strict=True))
    assert digest(replace(trace, steps=turned)) == digest(trace)
    assert digest(replace(trace, steps=trace.steps[:-1])) != digest(trace)
    assert digest(replace(trace, ending="limit")) != digest(trace)


# Checks of several targets, with the reference in the place of a vLLM


def source(name: str) -> Source:
    """A source that is never loaded: its name lists the reference's faults."""
    return Source(name, Path(), Path(), None, None)


def named(*faults: str) -> VllmName:
    """The reference with faults, as a vLLM."""
    return VllmName(source(",".join(faults) or "none"))


@pytest.fixture
def reference_as_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs run in this process, on the reference."""

    def make(vllm: VllmName) -> LoopTarget:
        names = vllm.source.name
        if names == "refused":
            raise InputError("no such vLLM")
        return ReferenceLoop([] if names == "none" else names.split(","))

    monkeypatch.setattr(jobs, "make_target", make)
    monkeypatch.setattr("proofs.releases.sweep.make_target", make)
    monkeypatch.setattr(jobs, "unrecognised", lambda target: {})
    monkeypatch.setattr("proofs.releases.sweep.unrecognised", lambda target: {})
    monkeypatch.setattr(vllm_check, "run_jobs", run_here)
    monkeypatch.setattr("proofs.report.near.rerun.run_jobs", run_here)


def checked(vllm: VllmName, against: VllmName | Path | None, **changes: Any) -> VllmReport:
    """The report of one."""
    settings = replace(FEW, **changes)
    (report,) = check_vllms([vllm], settings, against, True, None, never)
    return report


@pytest.mark.usefixtures("reference_as_vllm")
def test_the_first_divergence_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A change that breaks no claim would go unseen."""
    report = checked(named("boundary-never-encoded"), named(), claims=("slots-conserved",))
    print_vllm_report(report)
    assert report.compared is not None
    assert report.compared.new == ()
    assert report.compared.num_differing
    assert report.compared.difference is not None
    out = capsys.readouterr().out
    assert "no finding on either" in out
    assert "first in step" in out
    details = checked_vllm(report).details
    assert details["against"]["first_difference"]["place"] == report.compared.difference.place
    assert len(details["behaviour"]["digests"]["V1"]) == FEW.examples


@pytest.mark.usefixtures("reference_as_vllm")
def test_findings_are_sorted_by_what_both_show(capsys: pytest.CaptureFixture[str]) -> None:
    """A fault of both would be new, or one of this side old."""
    report = checked(named(FAULT, "dropped-at-first-occurrence"), named(FAULT))
    print_vllm_report(report)
    assert report.compared is not None
    assert report.searched is not None
    claims = {
        e.finding.fingerprint: e.finding.claim for e in report.searched.report.counterexamples
    }
    assert {claims[f] for f in report.compared.new} == {"held-until-last-use"}
    assert "boundary-miss-tolerated" in {claims[f] for f in report.compared.there}
    assert "NEW: held-until-last-use" in capsys.readouterr().out


@pytest.mark.usefixtures("reference_as_vllm")
def test_an_earlier_file_takes_the_place_of_a_vllm(tmp_path: Path) -> None:
    """The results of an earlier run could not be compared with."""
    path = tmp_path / "findings.json"
    found = checked_vllm(checked(named(FAULT), None))
    path.write_text(dumps(results_of("check-runs", [found], settings=search_settings(FEW))))
    assert load_earlier(path).target == f"reference +{FAULT}"
    same = checked(named(FAULT), path).compared
    gone = checked(named(), path).compared
    assert same is not None
    assert gone is not None
    assert (same.new, same.num_differing) == ((), 0)
    assert same.num_compared == 2 * FEW.examples
    assert gone.fixed
    assert gone.num_differing
    compared = checked(named(), path, seed=1).compared
    assert compared is not None
    assert compared.num_compared == 0


@pytest.mark.usefixtures("reference_as_vllm")
def test_a_search_by_time_is_compared_on_as_many_scenarios() -> None:
    """A slower side would run fewer scenarios, and what it did not run look fixed or new."""
    report = checked(named(FAULT), named(FAULT), examples=None, minutes=0.02)
    assert report.searched is not None
    assert report.compared is not None
    assert report.compared.num_compared == 2 * report.searched.report.num_scenarios
    assert (report.compared.new, report.compared.num_differing) == ((), 0)


@pytest.mark.usefixtures("reference_as_vllm")
def test_what_cannot_be_compared_with_is_refused() -> None:
    """A comparison with nothing would find everything new, or nothing."""
    with pytest.raises(InputError, match="refused: no such vLLM"):
        checked(named(), named("refused"))
    assert checked(named("refused"), None).refused == "no such vLLM"


EARLIER = '{"schema": 2, "kind": "check-runs", "exit_code": 1, "counts": {}, "settings": {}, '


@pytest.mark.parametrize(
    "text",
    [
        "not JSON",
        "[]",
        '{"schema": 1, "level": "loop", "findings": []}',
        '{"schema": 2, "kind": "check-runs"}',
        EARLIER.replace("check-runs", "check-functions") + '"targets": []}',
        EARLIER + '"targets": []}',
        EARLIER + '"targets": [{"target": "x", "outcomes": [], "violations": [{}]}]}',
        EARLIER + '"targets": [{"target": "x", "outcomes": []}]}',
    ],
)
def test_a_file_that_is_no_earlier_check_is_refused(tmp_path: Path, text: str) -> None:
    """Everything would be new against an unreadable file."""
    path = tmp_path / "findings.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"findings\.json: "):
        load_earlier(path)


# What a target cannot be given


class Refusing(ReferenceLoop):
    """Takes no scenario on V2, and none with items chunked on V1."""

    def missing(self, scenario: Scenario, runner: Runner) -> str | None:
        """Refuses, or not."""
        if runner == "V2":
            return "no V2"
        return None if scenario.config.whole_items else "chunks no items"

    def run(
        self, scenario: Scenario, runner: Runner, tensors: TensorSettings | None = None
    ) -> Iterator[Step]:
        """Runs what it did not refuse."""
        assert self.missing(scenario, runner) is None
        yield from super().run(scenario, runner, tensors)


def test_what_was_not_given_is_counted_by_reason() -> None:
    """Scenarios would be skipped in silence, and a run of none of them pass."""
    report = run_loop_check(Refusing(), replace(FEW, claims=None, examples=40))
    assert report.not_given["V2"] == {"no V2": 40}
    (reason,) = report.not_given["V1"]
    assert reason == "chunks no items"
    runs = {result.cases for result in report.results if result.part == "V1"}
    assert runs == {40 - report.not_given["V1"][reason]}
    assert {r.verdict for r in report.results if r.part == "V1 with V2"} == {None}
    alone = run_loop_check(Refusing(), replace(FEW, runners=("V2",)))
    assert exit_code(alone.verdicts) == exit_code([Verdict.ERROR])


def test_an_unrecognised_order_is_unknown() -> None:
    """Claims that nobody could check would look as if the release had no such runner."""
    report = run_loop_check(Refusing(), replace(FEW, examples=40))
    report = jobs.with_unrecognised(report, {"V2": "it encodes twice"})
    verdicts = {r.part: r.verdict for r in report.results if r.claim == "need-agrees"}
    assert verdicts["V2"] is Verdict.UNKNOWN
    assert verdicts["V1"] is not Verdict.UNKNOWN
    assert "it encodes twice" in {r.reason for r in report.results if r.part == "V2"}.pop()


@pytest.mark.parametrize(
    ("mode", "depths"), [("sync", {0}), ("async", {1, 2}), ("both", {0, 1, 2})]
)
def test_a_mode_draws_scenarios_of_its_own(mode: Any, depths: set[int]) -> None:
    """The column of a mode would hold runs of the other one."""
    settings = LoopCheckSettings(mode=mode)
    drawn = [draw(settings, number).scenario for number in range(60)]
    assert {scenario.config.async_depth for scenario in drawn} == depths
    for scenario in drawn:
        scenario.validate()


# Recorded scenarios and sweeps


def test_recorded_scenarios_are_those_of_the_lists() -> None:
    """The files would be out of step with the faults that they record."""
    texts = files()
    present = {path.name: path.read_text("utf-8") for path in DEFAULT_FOLDER.glob("*.json")}
    assert present == texts, "run `python -m tests.recorders.record_scenarios`"


def test_a_record_says_where_a_fault_shows() -> None:
    """A fault that came back, or one no longer seen, would be as expected."""
    fault = RecordedFault("f", "f.json", ("no-stall",), "0.32.0", "0.33.0", "0.24.0")
    wanted = {"0.23.0": None, "0.24.0": True, "0.32.0": True, "0.33.0": False, "0.40.0": False}
    assert {release: fault.expected(release) for release in wanted} == wanted
    open_ended = replace(fault, first_good=None, first_affected=None)
    assert open_ended.expected("0.32.0") is True
    assert open_ended.expected("0.31.0") is None
    assert open_ended.expected("0.33.0") is None
    assert replace(fault, last_affected=None).expected("0.33.0") is None


def swept(*faults: str, release: str, examples: int = 0) -> tuple[Recorded, dict[str, Any]]:
    """What a sweep shows of the reference in the place of a release."""
    recorded = load_recorded(DEFAULT_FOLDER)
    (recorded_fault,) = (f for f in recorded.index.faults if f.name == FAULT)
    kept = replace(recorded, index=replace(recorded.index, faults=(recorded_fault,)))
    vllm = VllmName(replace(named(*faults).source, release=release))
    return kept, sweep_vllm(SweepJob(vllm, kept, examples, 0), lambda *_: None, never)


@pytest.mark.usefixtures("reference_as_vllm")
def test_a_sweep_holds_releases_to_their_record() -> None:
    """A fault that is not where it is recorded would go unnoticed."""
    misses = "boundary-never-encoded"
    for faults, release, expected in (
        ((misses, FAULT), "0.23.0", []),
        ((misses,), "0.24.0", []),
        ((), "0.33.0", []),
        ((misses,), "0.23.0", ["REFUTED"]),
        ((misses, FAULT), "0.24.0", ["REFUTED"]),
        ((misses, FAULT), "0.33.0", ["REFUTED"]),
        ((), "0.24.0", ["UNKNOWN"]),
    ):
        found = list(deviations(*swept(*faults, release=release)))
        assert [deviation.verdict.name for deviation in found] == expected, (faults, release)


@pytest.mark.usefixtures("reference_as_vllm")
def test_a_sweep_searches_each_mode() -> None:
    """A column of the table would be filled from the other mode, or from nothing."""
    _, entry = swept(FAULT, release="0.23.0", examples=40)
    modes = {outcome.part.rpartition(" ")[2] for outcome in searched(entry)}
    assert modes == {"sync", "async"}
    found = cells(entry)
    for runner in RUNNERS:
        for mode in ("sync", "async"):
            assert "REFUTED" in found["boundary-miss-tolerated", (runner, mode)]  # type: ignore[index]
            assert "HELD" in found["slots-conserved", (runner, mode)]  # type: ignore[index]


def test_a_missing_answer_is_no_success() -> None:
    """A scenario that a release could not be given would count as gone."""
    recorded = load_recorded(DEFAULT_FOLDER)
    (fault,) = (f for f in recorded.index.faults if f.name == FAULT)
    kept = replace(recorded, index=replace(recorded.index, faults=(fault,)))
    entry_of_fault = {
        "verdicts": {runner: {fault.claims[0]: "NOT AVAILABLE"} for runner in RUNNERS},
        "reasons": {"V1": "cannot"},
    }
    for release in (fault.last_affected, fault.first_good):
        entry = Checked("t", (), release=release, details={"recorded": [entry_of_fault]})
        assert [d.verdict for d in deviations(kept, entry)] == [Verdict.UNKNOWN]


def test_an_index_that_is_wrong_is_refused(tmp_path: Path) -> None:
    """A sweep without its record would pass."""
    with pytest.raises(InputError, match="cannot be read"):
        load_recorded(tmp_path)
    for fault in (
        {"name": "x", "scenario": "../x.json", "claims": ["no-stall"]},
        {"name": "x", "scenario": "x.json", "claims": []},
        {"name": "x", "scenario": "x.json", "claims": ["no-such-claim"]},
        {"name": "x", "scenario": "x.json", "claims": ["no-stall"], "last_affected": "new"},
        {"name": "x", "scenario": "missing.json", "claims": ["no-stall"]},
    ):
        (tmp_path / INDEX).write_text(json.dumps({"schema": 1, "faults": [fault]}))
        with pytest.raises(InputError):
            load_recorded(tmp_path)


# The commands


@pytest.mark.parametrize(
    "line",
    [
        "check --target vllm --level loop",
        "check --target vllm --level loop --release nonsense",
        "check --target vllm --level loop --source no/such/folder",
        "check --target vllm --level loop --source . --release 0.33.0",
        "check --target vllm --level function --release 0.33.0 --release 0.24.0",
        "check --target vllm --level loop --release 0.33.0 --fault x",
        "check --level loop --against 0.24.0",
        "check --level loop --scheduler-class a:B",
        "check --mode sync",
        "check --target vllm --level loop --source {fake} --against no/such/file.json",
        "check --target vllm --level loop --source {fake} --against nonsense",
        "check --target vllm --level loop --source {fake} --claims no-such-claim",
        "replay {scenario} --target vllm",
        "replay {scenario} --target vllm --release nonsense",
        "replay {scenario} --target vllm --source no/such/folder",
        "replay {scenario} --target vllm --source {fake} --fault x",
        "replay {scenario} --release 0.33.0",
        "sweep --recorded no/such/folder",
        "sweep --release nonsense",
        "sweep --release 0.33.0 --json {scenario}",
    ],
)
def test_wrong_input_is_told_on_one_line(tmp_path: Path, line: str) -> None:
    """A user would see a traceback, or something would run that was not asked for."""
    package = tmp_path / "vllm"
    package.mkdir()
    (package / "__init__.py").write_text("")
    scenario = str(DEFAULT_FOLDER / f"{FAULT}.json")
    words = [word.format(fake=tmp_path, scenario=scenario) for word in line.split()]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.output.startswith("Error: ")
    assert len(result.output.strip().splitlines()) == 1


def test_a_release_is_named_once(tmp_path: Path) -> None:
    """A release given twice would be searched twice at once."""
    package = tmp_path / "vllm"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (vllm,) = named_vllms((), tmp_path, "a:B")
    assert vllm.scheduler_class == "a:B"
    assert vllm.source.release is None


@pytest.mark.usefixtures("reference_as_vllm")
def test_several_releases_are_told_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One release would take the place of another, or its exit code be lost."""
    vllms = (named(), named(FAULT))
    monkeypatch.setattr(NamedTargets, "vllms", lambda *_: vllms)
    line = f"--examples 40 --claims {','.join(CLAIMS)} --device none --json {tmp_path}/two.json"
    words = f"check --target vllm --level loop --release a {line} --report {tmp_path}".split()
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 1, result.output
    reports = json.loads((tmp_path / "two.json").read_text())["targets"]
    assert [report["target"] for report in reports] == ["reference", f"reference +{FAULT}"]
    assert [bool(report["violations"]) for report in reports] == [False, True]
    assert list((tmp_path / FAULT).glob("*/trace.json"))
    monkeypatch.setattr("proofs.commands.check_runs.compared_with", lambda *_: vllms[1])
    result = CliRunner().invoke(main, [*words, "--against", "b"])
    assert result.exit_code == 0, result.output
    assert "fixed: boundary-miss-tolerated" in result.output
    monkeypatch.setattr(NamedTargets, "vllms", lambda *_: (named("refused"),))
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert result.output == "Error: no such vLLM\n"


NEWEST = "0.33.0"
needs_vllm = pytest.mark.skipif(
    find_spec("transformers") is None or unpacked(cache_folder(), NEWEST) is None,
    reason="run `make vllm` first",
)


def command(line: str) -> Result:
    """What a command says and exits with; its jobs have processes of their own."""
    return CliRunner().invoke(main, line.split())


@pytest.fixture(scope="module")
def checked_release(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Result, Path]:
    """A check of a release, and the folder with its files."""
    folder = tmp_path_factory.mktemp("checked")
    done = command(
        f"check --target vllm --level loop --release {NEWEST} --examples 6 --claims no-stall "
        f"--device none --json {folder}/found.json --report {folder}/report"
    )
    return done, folder


@pytest.mark.vllm
@needs_vllm
def test_a_release_is_searched(
    checked_release: tuple[Result, Path],
) -> None:
    """The loop of a release could not be checked at all, or its patches would be hidden."""
    done, folder = checked_release
    assert done.exit_code == 1, done.stdout + done.stderr
    (report,) = json.loads((folder / "found.json").read_text())["targets"]
    details = report["details"]
    assert report["release"] == NEWEST
    assert not details["failures"]
    assert details["patches"]
    assert all(len(digests) == 6 for digests in details["behaviour"]["digests"].values())
    for outcome in report["outcomes"]:
        assert outcome["cases"] > 3
        not_given = sum(details["not_given"].get(outcome["part"], {}).values())
        assert outcome["cases"] + not_given == 6
    assert "Not as the release has it:" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.vllm
@needs_vllm
def test_a_written_trace_is_replayed_to_the_same_run(
    checked_release: tuple[Result, Path],
) -> None:
    """A report could not be confirmed."""
    trace = next((checked_release[1] / "report").glob("*/trace.json"))
    recorded = load(trace)
    done = command(f"replay {trace} --target vllm --release {NEWEST} --device none")
    assert done.exit_code == 1, done.stdout + done.stderr
    assert f"equals the run recorded on vllm {NEWEST}" in done.stdout
    assert f"REFUTED {recorded.findings[0].claim} " in done.stdout


@pytest.mark.vllm
@needs_vllm
def test_a_sweep_meets_the_record_and_goes_on_where_it_was(tmp_path: Path) -> None:
    """The recorded faults would not be where they are recorded, or be run again and again."""
    file = tmp_path / "sweep.json"
    line = f"sweep --release {NEWEST} --examples 0 --json {file}"
    done = command(line)
    assert done.exit_code == 0, done.stdout + done.stderr
    written = file.read_text()
    again = command(line)
    assert again.stdout == done.stdout
    assert file.read_text() == written


@pytest.mark.vllm
@needs_vllm
def test_a_class_that_is_no_scheduler_is_refused() -> None:
    """A misspelled scheduler would break down in the middle, or the release's own would run."""
    source = unpacked(cache_folder(), NEWEST)
    assert source is not None
    (answer,) = run_jobs(refusals, [source], ["classes"], warm_up_of=imported)
    found = answer.require("classes")
    assert found["vllm.v1.core.sched.async_scheduler:AsyncScheduler"] == "a scheduler"
    assert "no such class" in found.pop("no.such:Thing")
    assert "it has no method schedule" in found.pop("collections:OrderedDict")
    assert "it has no method schedule" in found.pop("json:dumps")
