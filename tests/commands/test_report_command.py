"""``residency report``: what it writes of files and findings, and how it compares two runs."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import click
import html5lib
import pytest
from click.testing import CliRunner, Result

from impl.target import RUNNERS, Runner
from impl.targets.runs import ReferenceLoop
from impl.tensors import TensorSettings
from impl.vllm.launch.source import from_directory
from proofs.commands.main import main
from proofs.drive.origin import Origin, vllm_origin
from proofs.drive.recorded_findings import recorded_findings
from proofs.recorded import SCENARIOS
from proofs.report.near.comparison import compare, shown_pairs
from proofs.report.pages.comparison import comparison_lines, comparison_page
from proofs.report.pages.reproduce import Links, reproduce
from proofs.report.ready.reference import reference_test
from proofs.results.document import Results, dumps, results_of
from proofs.results.outcome import Checked
from proofs.results.violation import Violation, of_function
from proofs.run.judge import run_and_judge
from proofs.run.record import record
from proofs.run.targets import VllmName, faults_of
from spec.errors import InputError
from spec.functions.cases import WindowCase
from spec.functions.findings import finding
from spec.monitor.monitor import LoopMonitor
from spec.record.config import EngineConfig
from spec.record.document import dumps_scenario, dumps_trace, load
from spec.record.feature import Feature
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Continuation, FailedLoad, Scenario, ScenarioRequest
from spec.record.steps import Trace
from tests.support.hostile_names import NAMES
from tests.support.reference_as_vllm import replace_all, write_folder
from tests.support.results_files import read_results

RECORDED = SCENARIOS
FAULTS = ("deferred-free-margin", "shifted-cut")
STUCK = load(RECORDED / "deferred-free-margin.json").scenario
CONFIG = EngineConfig(8, 4, 4, num_kv_blocks=60)


def residency(*words: object) -> Result:
    """The command, in this process."""
    return CliRunner().invoke(main, [str(word) for word in words])


def run(scenario: Scenario = STUCK, *faults: str, runner: Runner = "V1") -> Trace:
    """A run of the reference, as far as the monitor looks."""
    monitor = LoopMonitor(scenario, runner)
    return record(ReferenceLoop(faults), scenario, runner, monitor=monitor).trace


def files_below(folder: Path) -> dict[str, set[str]]:
    """Names of the files of each folder."""
    found: dict[str, set[str]] = {}
    for path in folder.rglob("*"):
        if path.is_file():
            found.setdefault(path.parent.relative_to(folder).as_posix(), set()).add(path.name)
    return found


REPORT = set(Links().all)


# Reports


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """A report on a scenario, and where it lies."""
    folder = tmp_path_factory.mktemp("reported") / "out"
    path = RECORDED / "deferred-free-margin.json"
    faults = [word for fault in FAULTS for word in ("--fault", fault)]
    return residency("report", path, *faults, "--device", "none", "-o", folder), folder


def test_a_scenario_is_run_and_reported(reported: tuple[Result, Path]) -> None:
    """A folder would lack what a reviewer reads, runs or pastes."""
    result, folder = reported
    assert result.exit_code == 1, result.output
    found = files_below(folder)
    assert found.pop(".") == {"index.html", "junit.xml"}
    assert list(found.values()) == [REPORT]
    assert result.output.count("wrote ") == len(REPORT) + 1
    (name,) = found
    text = (folder / name / "report.md").read_text()
    assert f"--fault {FAULTS[0]} --fault {FAULTS[1]}" in text
    assert "V1 and V2" in text
    assert name in (folder / "index.html").read_text()


def test_a_trace_is_judged_as_it_was_recorded(
    tmp_path: Path, reported: tuple[Result, Path]
) -> None:
    """A run that was seen somewhere else would be replaced by one of our own."""
    (trace,) = reported[1].glob("*/trace.json")
    result = residency("report", trace, "-o", tmp_path / "out")
    assert result.exit_code == 1, result.output
    (text,) = ((p.read_text()) for p in (tmp_path / "out").glob("*/report.md"))
    assert "residency replay trace.json --target recorded" in text
    run_again = residency("report", trace, "--target", "reference", "-o", tmp_path / "again")
    assert run_again.exit_code == 0, run_again.output
    assert files_below(tmp_path / "again") == {".": {"junit.xml"}}


def test_replay_writes_the_same_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reported: tuple[Result, Path]
) -> None:
    """Who replays a file would have to run it again to see a page."""
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    path = RECORDED / "deferred-free-margin.json"
    faults = [word for fault in FAULTS for word in ("--fault", fault)]
    folder = tmp_path / "out"
    result = residency("replay", path, *faults, "--device", "none", "--report", folder)
    assert result.exit_code == 1, result.output
    assert files_below(folder) == files_below(reported[1])
    (text,) = (p.read_text() for p in folder.glob("*/report.md"))
    assert text in summary.read_text()


def test_each_reproducing_line_shows_the_violation_again(
    monkeypatch: pytest.MonkeyPatch, reported: tuple[Result, Path]
) -> None:
    """A reader would type what the report says and see something else."""
    (folder,) = (path.parent for path in reported[1].glob("*/report.md"))
    monkeypatch.chdir(folder)
    line = re.search(r"^residency (replay .*)$", (folder / "report.md").read_text(), re.MULTILINE)
    assert line is not None
    result = residency(*line[1].split())
    assert result.exit_code == 1, result.output
    assert "REFUTED no-stall" in result.output


def test_findings_of_a_check_are_reported_where_they_were_found(tmp_path: Path) -> None:
    """The results of a nightly run could not be turned into reports."""
    file = tmp_path / "found.json"
    words = ("--claims", "no-stall", "--examples", 60, "--device", "none", "--json", file)
    checked = residency(
        "check", "--target", "reference", "--level", "loop", "--fault", "shifted-cut", *words
    )
    assert checked.exit_code == 1, checked.output
    (found,) = read_results(file, "check-runs")["targets"]
    fingerprints = {violation["fingerprint"] for violation in found["violations"]}
    sarif, junit = tmp_path / "s.sarif", tmp_path / "j.xml"
    result = residency("report", file, "-o", tmp_path / "out", "--sarif", sarif, "--junit", junit)
    assert result.exit_code == 1, result.output
    folders = {p.parent.name.rpartition("-")[2] for p in tmp_path.glob("out/*/report.html")}
    assert folders == fingerprints
    assert json.loads(sarif.read_text())["runs"][0]["results"] == []  # The reference has no lines.
    assert "failure" in junit.read_text()
    held = residency("report", file, "--target", "reference", "-o", tmp_path / "held")
    assert held.exit_code == 0, held.output


def results_on(*targets: Checked) -> Results:
    """What a check wrote."""
    return results_of("check-functions", targets, settings={})


def test_violations_name_what_they_were_found_on() -> None:
    """Wrong: a violation on one release is run on another, or a file chooses the code that runs."""
    found = finding(
        "window-exact",
        WindowCase((Feature(0, 2, "A"),), 0, 2),
        observed="x",
        expected="y",
        target="t V1",
        mechanism="m",
    )
    runs = of_function(found, "window", None)
    in_the_middle = replace(runs, document=None)
    violations = (runs, runs, in_the_middle)
    for checked, expected, code_named in (
        (Checked("vllm 0.33.0", (), release="0.33.0"), ("vllm", "0.33.0", ()), None),
        (Checked("reference +a +b", ()), ("reference", None, ("a", "b")), None),
        (
            Checked("vllm at /x y", (), source="/x y", scheduler_class="a:B"),
            ("vllm", None, ()),
            "--target vllm --source '/x y' --scheduler-class a:B",
        ),
    ):
        (recorded,) = recorded_findings(
            results_on(replace(checked, violations=violations)), "found.json"
        )
        choice = recorded.choice
        assert (choice.name, choice.release, choice.faults) == expected
        assert choice.source is None
        assert choice.scheduler_class is None
        assert recorded.code_named == code_named
        assert (len(recorded.documents), recorded.num_without) == (1, 1)


@pytest.mark.parametrize(
    "named", [{"source": "evil"}, {"release": "0.33.0", "scheduler_class": "evil:Scheduler"}]
)
def test_a_file_does_not_choose_the_code_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: dict[str, str]
) -> None:
    """Wrong: whoever sends a file of results runs code on the reader's machine."""
    monkeypatch.chdir(tmp_path)
    Path("evil").mkdir()
    Path("evil.py").write_text("from pathlib import Path; Path('ran').touch()")
    scenario = {"document": json.loads(dumps_scenario(STUCK))}
    violation = replace(_violation(), **scenario)
    checked = Checked("vllm", (), (violation,), **named)
    Path("found.json").write_text(dumps(results_on(checked)))
    result = residency("report", "found.json", "--device", "none")
    assert result.exit_code == 2, result.output
    assert "found on code that only you may choose to run" in result.output
    assert "evil" in result.output
    assert not Path("ran").exists()
    held = residency("report", "found.json", "--target", "reference", "--device", "none")
    assert held.exit_code == 0, held.output


def _violation() -> Violation:
    return Violation("no-stall", "m", "0" * 12, "vllm V1", "x", "y", "smallest")


def test_a_case_of_a_function_is_reported_too(tmp_path: Path) -> None:
    """What a check of single functions wrote could not be read back."""
    checked = residency(
        "check",
        "--target",
        "reference",
        "--fault",
        "rows-by-position",
        "--examples",
        60,
        "--claims",
        "rows-exact",
        "--report",
        tmp_path / "first",
        "--junit",
        tmp_path / "j.xml",
    )
    assert checked.exit_code == 1, checked.output
    assert "failure" in (tmp_path / "j.xml").read_text()
    path = next((tmp_path / "first").glob("*/case.json"))
    result = residency("report", path, "--fault", "rows-by-position", "-o", tmp_path / "out")
    assert result.exit_code == 1, result.output
    found = files_below(tmp_path / "out")
    assert found.pop(".") == {"index.html", "junit.xml"}
    assert all(names == {"case.json", "report.html", "report.md"} for names in found.values())


def test_a_vllm_is_run_in_its_own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report on a checkout would be one on the reference."""
    replace_all(monkeypatch.setattr)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    checkout = tmp_path / "checkout"
    write_folder(checkout, *FAULTS)
    path = RECORDED / "deferred-free-margin.json"
    result = residency(
        "report", path, "--source", checkout, "--device", "none", "-o", tmp_path / "out"
    )
    assert result.exit_code == 1, result.output
    (text,) = (p.read_text() for p in (tmp_path / "out").glob("*/report.md"))
    assert f"--target vllm --source {checkout}" in text
    (test,) = (p.read_text() for p in (tmp_path / "out").glob("*/test_repro.py"))
    assert "from vllm" in test
    assert "residency" not in test


# Wrong use


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("no/such/file", "cannot be read"),
        ("notes.txt", "not JSON"),
        ("list.json", "list.json"),
        ("empty.json", "no finding to report on"),
        ("broken.json", "broken.json: exit_code: Field required"),
        ("old.json", "does not say what it is"),
        ("twice.json", "the key 'schema' stands twice"),
        ("deep.json", "nested too deep"),
        ("scenario.json scenario.json", "--diff compares two"),
        ("scenario.json --release 0.33.0 --release 0.24.0", "--diff compares two"),
        ("scenario.json --target vllm", "--target vllm needs one of"),
        ("scenario.json --target recorded", "only a trace"),
        ("scenario.json --target recorded --release 0.33.0", "--diff compares two"),
        ("scenario.json --fault nope", "unknown fault"),
        ("scenario.json --fault shifted-cut --release 0.33.0", "--fault breaks the reference"),
        ("scenario.json --scheduler-class a:B", "--scheduler-class needs one of --release"),
        ("scenario.json --source nowhere", "no vLLM there"),
        ("scenario.json --device toaster", "unknown device"),
        ("scenario.json -o no/such/out", "there is no folder"),
        ("scenario.json --junit no/such/j.xml", "there is no folder"),
        ("--diff scenario.json", "--diff takes two traces"),
        ("--diff scenario.json trace.json", "holds a scenario and no run"),
        ("--diff trace.json other.json", "they differ in encoder_cache_size"),
        ("--diff trace.json trace.json --release 0.33.0", "leave the target's options out"),
        ("--diff trace.json trace.json --sarif s.sarif", "not of --diff"),
        ("--diff scenario.json --release 1 --release 2 --runner both", "runs of one runner"),
    ],
)
def test_wrong_input_is_told_on_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, told: str
) -> None:
    """A user would see a traceback, or an empty report that looks like a good one."""
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("no JSON")
    Path("list.json").write_text("[]")
    Path("empty.json").write_text(dumps(results_on(Checked("reference", ()))))
    Path("broken.json").write_text('{"schema": 2, "kind": "check-runs", "targets": [7]}')
    Path("old.json").write_text('{"schema": 1, "target": "reference", "findings": []}')
    Path("twice.json").write_text('{"schema": 1, "schema": 1, "kind": "scenario"}')
    Path("deep.json").write_text("[" * 100_000)
    Path("scenario.json").write_text(dumps_scenario(STUCK))
    Path("trace.json").write_text(dumps_trace(run()))
    larger = replace(STUCK, config=replace(STUCK.config, encoder_cache_size=8))
    Path("other.json").write_text(dumps_trace(run(larger)))
    result = residency("report", *line.split())
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.output.startswith("Error: ")
    assert told in result.output
    assert len(result.output.strip().splitlines()) == 1
    assert not Path("residency-report").exists()


def test_a_click_error_is_no_traceback() -> None:
    """The command without a file would do nothing and succeed."""
    result = residency("report")
    assert result.exit_code == click.UsageError.exit_code


# Two runs


def test_two_runs_show_what_a_change_fixed(tmp_path: Path) -> None:
    """A reviewer could not tell what a pull request changes."""
    bad, good = tmp_path / "bad.json", tmp_path / "good.json"
    bad.write_text(dumps_trace(run(STUCK, *FAULTS)))
    good.write_text(dumps_trace(run()))
    result = residency("report", "--diff", bad, good, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "reference V1 keeps no-stall, which reference" in result.output
    marked = [line for line in result.output.splitlines() if line.endswith("<<<")]
    assert len(marked) == 1
    assert "budget" in result.output
    page = (tmp_path / "out" / "diff.html").read_text()
    assert page.count('class="parting"') == 1
    assert page.count("<svg") >= 2
    assert "here they part" in (tmp_path / "out" / "diff.md").read_text()
    back = residency("report", "--diff", good, bad, "-o", tmp_path / "out")
    assert back.exit_code == 1, back.output
    assert "new: no-stall" in back.output
    same = residency("report", "--diff", bad, bad, "-o", tmp_path / "out")
    assert same.exit_code == 0, same.output
    assert "the two runs are the same, step by step" in same.output
    assert "both break no-stall" in same.output
    assert 'class="parting"' not in (tmp_path / "out" / "diff.html").read_text()


def test_a_scenario_is_compared_on_two_vllms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two commands more would stand between a release and what it fixed."""
    replace_all(monkeypatch.setattr)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    before, after = tmp_path / "before", tmp_path / "after"
    write_folder(before, *FAULTS)
    write_folder(after)
    path = RECORDED / "deferred-free-margin.json"
    words = ("--diff", path, "--device", "none", "-o", tmp_path / "out")
    result = residency("report", *words, "--source", before, "--source", after)
    assert result.exit_code == 0, result.output
    assert f"vllm at {after} V1 keeps no-stall, which vllm at {before} V1 breaks" in result.output
    result = residency("report", *words, "--target", "reference", "--source", before)
    assert result.exit_code == 1, result.output


def test_what_is_in_the_file_is_not_believed() -> None:
    """A finding that somebody wrote into a trace would count as fixed."""
    comparison = compare(run(), run())
    assert (comparison.fixed, comparison.new, comparison.still) == ((), (), ())
    assert comparison.sentence == "neither run breaks a claim"


def test_a_run_that_was_cut_is_compared_as_far_as_it_goes() -> None:
    """The end of a stopped run would look like a difference, and its silence like a fix."""
    whole = run()
    for ending in ("limit", "stopped"):
        cut = replace(whole, steps=whole.steps[:3], ending=ending)
        assert compare(cut, whole).difference is None
        assert compare(whole, cut).difference is None
    shorter = replace(whole, steps=whole.steps[:3])
    found = compare(whole, shorter)
    assert found.difference is not None
    assert found.difference.place == ""
    assert "they differ in length" in "\n".join(comparison_lines(found))
    stuck = run(STUCK, *FAULTS)
    assert "as far as it ran" in compare(stuck, replace(whole, ending="limit")).sentence


def test_a_long_comparison_keeps_the_first_difference() -> None:
    """The one step that matters would be cut away."""
    scenario = Scenario(
        replace(CONFIG, num_kv_blocks=900),
        (ScenarioRequest(200, max_tokens=200), ScenarioRequest(40, arrival=60)),
    )
    first = run(scenario)
    half = len(first.steps) // 2
    index = next(i for i, step in enumerate(first.steps) if i >= half and step.calls)
    step = replace(first.steps[index], calls=())
    second = replace(first, steps=(*first.steps[:index], step, *first.steps[index + 1 :]))
    comparison = compare(first, second)
    before, pairs, after = shown_pairs(comparison)
    assert [pair.first for pair in pairs if pair.relation == "first difference"] == [index]
    assert before + len(pairs) + after == len(first.steps)
    assert before > 0
    assert after > 0
    text = "\n".join(comparison_lines(comparison))
    assert f"... {before} steps before are left out" in text
    assert len(comparison_page(comparison)) < 1_000_000


def test_steps_that_only_one_run_has_stand_alone() -> None:
    """All later steps would stand beside steps of other passes."""
    comparison = compare(run(STUCK, *FAULTS), run())
    first, second = comparison.first.trace.steps, comparison.second.trace.steps
    for pair in comparison.pairs:
        if pair.first is not None and pair.second is not None:
            assert first[pair.first].kind == second[pair.second].kind
    assert [p.first for p in comparison.pairs if p.first is not None] == list(range(len(first)))
    assert [p.second for p in comparison.pairs if p.second is not None] == list(range(len(second)))


# The line that reproduces


def test_a_line_names_the_target_whatever_its_path(tmp_path: Path) -> None:
    """A folder with a space would be two words of the command."""
    folder = tmp_path / "a b'c"
    write_folder(folder)
    origin = vllm_origin(VllmName(from_directory(folder, tmp_path / "cache"), "x.y:Z"))
    finding = LoopFinding("runners-agree", 0, None, None, "this", "that", "made up")
    test, replay = reproduce(origin, finding, "V1", Links())
    assert test.endswith("python -m pytest test_repro.py")
    assert test.startswith("PYTHONPATH=\"$(residency vllm fetch --source '")
    assert "--scheduler-class x.y:Z --runner both" in replay
    assert f"""--source '{folder}'""".replace("'c'", "'\"'\"'c'") in replay
    (only,) = reproduce(Origin("reference"), finding, "V2", Links(test=None))
    assert only == "residency replay scenario.json --target reference --runner both"


# The example for our own tests


def loaded(text: str) -> ModuleType:
    """The file as a module."""
    module = ModuleType("test_repro")
    exec(compile(text, "test_repro.py", "exec"), module.__dict__)
    return module


def only_test(module: ModuleType) -> Callable[..., None]:
    """Its one test."""
    (found,) = (value for name, value in vars(module).items() if name.startswith("test_"))
    test: Callable[..., None] = found
    return test


EXAMPLES = (
    ("deferred-free-margin", FAULTS, "no-stall"),
    ("switch-cut-ends-late", ("cut-ends-late",), "target-resident"),
    ("encoder-decoder-credit", ("encoder-decoder-credit",), "slots-conserved"),
)


@pytest.mark.parametrize(("scenario", "faults", "claim"), EXAMPLES)
def test_an_example_fails_with_the_fault_and_passes_without(
    scenario: str, faults: tuple[str, ...], claim: str
) -> None:
    """A test that cannot fail, or never passes, would be kept for ever."""
    given = load(RECORDED / f"{scenario}.json").scenario
    judged = run_and_judge(ReferenceLoop(faults), given, RUNNERS, None)
    finding = next(f for found in judged.findings.values() for f in found if f.claim == claim)
    shown_by = tuple(r for r in RUNNERS if any(f.claim == claim for f in judged.findings[r]))
    trace = judged.traces[shown_by[0]]
    module = loaded(reference_test(finding, trace, "it", runners=shown_by))
    assert given == module.SCENARIO
    for runner in shown_by:
        with pytest.raises(AssertionError):
            only_test(module)(runner)
    module.FAULTS = ()  # type: ignore[attr-defined]
    for runner in shown_by:
        only_test(module)(runner)


def test_an_example_that_compares_the_runners(tmp_path: Path) -> None:
    """The claim on both runners would have a test of one."""
    scenario = load(RECORDED / "masked-leading-gap.json").scenario
    target = ReferenceLoop(["v2-splits-rows"])
    judged = run_and_judge(target, scenario, RUNNERS, TensorSettings())
    (finding, *_) = judged.differences
    text = reference_test(finding, judged.traces["V1"], "it", runners=RUNNERS)
    assert "tensors=TensorSettings()" in text
    module = loaded(text)
    with pytest.raises(AssertionError):
        only_test(module)()
    module.FAULTS = ()  # type: ignore[attr-defined]
    only_test(module)()


def test_every_part_of_a_scenario_survives() -> None:
    """The example would run another scenario than the one that showed the fault."""
    mask = (True, False, True)
    request = ScenarioRequest(
        6,
        (Feature(0, 3, "A", mask), Feature(3, 1, "B")),
        arrival=1,
        max_tokens=2,
        priority=3,
        contents=("a", "b"),
        continuations=(Continuation(4, 2, (Feature(0, 1, "C"),), contents=("c",)),),
        accepted_drafts=(1, 0),
        prefix_hits=(2,),
        failed_loads=(FailedLoad(1, 0), FailedLoad(2, 1)),
    )
    config = replace(CONFIG, prefix_caching=True, policy="priority", num_speculative_tokens=1)
    scenario = Scenario(config, (request, ScenarioRequest(1, abort=3)), resets=(2, 5))
    scenario.validate()
    trace = Trace(scenario, "reference", "V1", (), "idle")
    finding = LoopFinding("no-stall", 0, 0, None, "this", "that", "made up")
    module = loaded(reference_test(finding, trace, "it", runners=("V1",)))
    assert scenario == module.SCENARIO


@pytest.mark.parametrize("name", NAMES)
def test_an_identifier_stays_a_literal(name: str) -> None:
    """A hash with quotes or line ends would run as code, or end the docstring."""
    scenario = Scenario(CONFIG, (ScenarioRequest(3, (Feature(0, 2, name),)),))
    trace = Trace(scenario, "reference", "V1", (), "idle")
    finding = LoopFinding("no-stall", 0, 0, None, name, name, name)
    module = loaded(reference_test(finding, trace, "it", runners=("V1",)))
    assert scenario == module.SCENARIO


def test_an_example_is_about_the_reference_only() -> None:
    """A run of a vLLM would be taken for one of ours."""
    assert faults_of("reference +a +b") == ("a", "b")
    assert faults_of("reference") == ()
    assert faults_of("vllm 0.33.0") is None
    assert faults_of("reference of another kind") is None
    trace = replace(run(), target="vllm 0.33.0")
    finding = LoopFinding("no-stall", 0, 0, None, "this", "that", "made up")
    with pytest.raises(InputError, match="needs a reference run"):
        reference_test(finding, trace, "it", runners=("V1",))


@pytest.mark.parametrize("index", range(0, len(NAMES) - 1, 2))
def test_no_name_breaks_the_page_of_two_runs(index: int) -> None:
    """A name would be markup of the page, or leave an element open."""
    first, second = NAMES[index : index + 2]
    (request,) = STUCK.requests
    features = tuple(
        replace(feature, identifier=name)
        for feature, name in zip(request.features, (first, second), strict=True)
    )
    scenario = replace(STUCK, requests=(replace(request, features=features),))
    named = [replace(run(scenario, *faults), target=f"vllm at /{first}") for faults in (FAULTS, ())]
    page = comparison_page(compare(*named))
    heading = re.search(r"<h1>(.*?)</h1>", page, re.DOTALL)
    assert heading is not None
    # A telephone shows some forty characters on a line, and a heading is not to fill the screen.
    assert len(html.unescape(heading[1])) < 160
    parser = html5lib.HTMLParser(strict=True)
    parser.parse(page)
    plain = comparison_page(compare(run(STUCK, *FAULTS), run()))
    tags = re.compile(r"</?[a-zA-Z][a-zA-Z0-9]*")
    assert sorted(set(tags.findall(page))) == sorted(set(tags.findall(plain)))
