"""``residency replay`` and ``residency bench loop``: what they say, write and exit with."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from impl.target import RUNNERS, Runner
from impl.targets.runs import ReferenceLoop
from impl.tensors import TensorSettings
from proofs.commands.main import main
from proofs.drive.benchmark import benchmark_scenario
from proofs.drive.replay import Replayed, agreement, gone, replay_loop
from proofs.releases.replay_text import describe_finding
from proofs.run.record import record
from spec.claims.witnesses import FULL_CACHE
from spec.errors import InputError
from spec.functions import case_files
from spec.functions.cases import GatherCase, GatherRequest, RowRangeCase
from spec.functions.findings import finding
from spec.monitor.monitor import LoopMonitor
from spec.record.config import EngineConfig
from spec.record.document import (
    LoopDocument,
    TraceDocument,
    dumps_scenario,
    dumps_trace,
    load,
    loads,
)
from spec.record.feature import Feature
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Scenario, ScenarioRequest
from spec.record.steps import Ending, ErrorSeen, PassSeen, Step, Trace, UpdateSeen
from spec.verdict import Verdict
from tests.support.results_files import read_results

SCENARIO = Scenario(
    EngineConfig(
        max_num_batched_tokens=6,
        encoder_compute_budget=6,
        encoder_cache_size=6,
        num_kv_blocks=40,
        scheduler_lookahead=1,
        gather_lookahead=1,
        num_speculative_tokens=1,
    ),
    (
        ScenarioRequest(8, (Feature(0, 3, "A"), Feature(4, 3, "B")), max_tokens=3),
        ScenarioRequest(3, (Feature(0, 3, "A"),), arrival=1),
    ),
)
ABORTED = replace(
    SCENARIO, requests=(ScenarioRequest(10, (Feature(4, 5, "A"),), abort=1, max_tokens=2),)
)
FOUND = LoopFinding("no-stall", 1, 0, 1, "nothing moves", "a change", "waits for room", (1, 2))


def trace_of(runner: Runner = "V1", max_passes: int = 50) -> Trace:
    """The reference's run of the scenario."""
    return record(ReferenceLoop(), SCENARIO, runner, max_passes=max_passes).trace


@dataclass
class FixedMonitor:
    """Finds what it is told to, at the end."""

    found: tuple[LoopFinding, ...] = ()
    settles_at: int = -1
    seen: list[Step] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)

    @property
    def settled(self) -> bool:
        """Whether the pass at which it settles was seen."""
        return any(step.kind == "pass" and step.index == self.settles_at for step in self.seen)

    def observe(self, step: Step) -> Iterable[LoopFinding]:
        """Note the step."""
        self.seen.append(step)
        return ()

    def finish(self, ending: Ending) -> Iterable[LoopFinding]:
        """Note the ending."""
        self.endings.append(ending)
        return self.found


@dataclass
class FixedTarget:
    """Shows fixed steps, whatever it is asked to run."""

    steps: tuple[Step, ...]
    refusal: str | None = None
    name: str = "fixed"

    def missing(self, scenario: Scenario, runner: Runner) -> str | None:
        """The refusal, if any."""
        return self.refusal

    def run(
        self, scenario: Scenario, runner: Runner, tensors: TensorSettings | None = None
    ) -> Iterator[Step]:
        """The fixed steps."""
        yield from self.steps


class BrokenTarget(FixedTarget):
    """A driver that breaks down after its steps."""

    def run(
        self, scenario: Scenario, runner: Runner, tensors: TensorSettings | None = None
    ) -> Iterator[Step]:
        """The steps, then the breakdown."""
        yield from self.steps
        raise TypeError("no such thing")


def replayed(
    target: FixedTarget | ReferenceLoop,
    text: str,
    monitor: FixedMonitor | None = None,
    max_passes: int = 50,
    runner: Runner = "V1",
) -> Replayed:
    """Replay a document's text on a target."""
    document: LoopDocument = loads(text)
    return replay_loop(
        document,
        target,
        runner,
        lambda scenario, name: monitor or FixedMonitor(),
        tensors=None,
        max_passes=max_passes,
    )


def test_a_recording_ends_when_it_should() -> None:
    """Wrong: a run that was cut short reads as complete, or loses the updates of its last pass."""
    whole = trace_of()
    assert whole.ending == "idle"
    cut = trace_of(max_passes=2)
    assert cut.ending == "limit"
    assert cut.steps == whole.steps[: len(cut.steps)]
    assert [step.index for step in cut.steps if isinstance(step, UpdateSeen)] == [0, 1]
    monitor = FixedMonitor(settles_at=1)
    stopped = record(ReferenceLoop(), SCENARIO, "V1", monitor=monitor)
    assert stopped.trace.ending == "stopped"
    assert isinstance(stopped.trace.steps[-1], PassSeen)
    assert tuple(monitor.seen) == stopped.trace.steps
    assert monitor.endings == ["stopped"]
    with pytest.raises(InputError, match="allow at least 1"):
        record(ReferenceLoop(), SCENARIO, "V1", max_passes=0)


def test_a_recording_ends_with_an_error() -> None:
    """Wrong: a run whose scheduler raised reads as one that came to rest."""
    first = replace(trace_of().steps[0], error=ErrorSeen("ValueError", "x"))
    monitor = FixedMonitor((FOUND,))
    target = FixedTarget((first, *trace_of().steps[1:]))
    recording = record(target, SCENARIO, "V1", monitor=monitor)
    assert (recording.trace.steps, recording.trace.ending) == ((first,), "error")
    assert recording.findings == (FOUND,)
    assert monitor.endings == ["error"]


def test_only_a_run_that_came_to_rest_holds() -> None:
    """Wrong: a run that showed nothing, or not all, passes."""
    text = dumps_scenario(SCENARIO)
    steps = trace_of().steps
    broken = (replace(steps[0], error=ErrorSeen("ValueError", "x")),)
    events = tuple(step for step in steps if step.kind == "event")
    assert replayed(FixedTarget(steps), text).verdict is Verdict.HELD
    assert replayed(FixedTarget(steps), text, FixedMonitor((FOUND,))).verdict is Verdict.REFUTED
    assert replayed(FixedTarget(steps), text, max_passes=1).verdict is Verdict.UNKNOWN
    settled = FixedMonitor(settles_at=0)
    assert replayed(FixedTarget(steps), text, settled).verdict is Verdict.UNKNOWN
    assert replayed(FixedTarget(events), text).verdict is Verdict.VACUOUS
    assert replayed(FixedTarget(()), text).verdict is Verdict.VACUOUS
    assert replayed(FixedTarget((steps[1], *broken)), text).verdict is Verdict.ERROR
    refused = replayed(FixedTarget(steps, "has no such runner"), text)
    assert (refused.verdict, refused.reason) == (Verdict.ERROR, "has no such runner")
    down = replayed(BrokenTarget(steps), text)
    assert (down.verdict, down.reason) == (Verdict.ERROR, "TypeError: no such thing")


def test_recorded_findings_that_are_gone_are_named() -> None:
    """Wrong: a mended fault goes unnoticed, or one that was not run again counts as gone."""
    other = replace(FOUND, claim="no-thrash")
    shrunk = replace(FOUND, shape="one request", observed="another value")
    of_both = replace(FOUND, claim="runners-agree")
    findings = (shrunk, other, of_both)
    scenario = loads(dumps_scenario(SCENARIO, findings))
    trace = loads(dumps_trace(trace_of("V1"), findings))
    v1 = Replayed("V1", Verdict.REFUTED, findings=(FOUND,))
    v2, replays = Replayed("V2", Verdict.HELD), Replayed("V1 with V2", Verdict.HELD)
    assert gone(scenario, [v1]) == (other,)
    assert gone(scenario, [v2]) == (shrunk, other)
    assert gone(scenario, [v1, v2, replays]) == (other, of_both)
    assert gone(trace, [v1]) == (other,)
    assert gone(trace, [v2]) == ()


def test_runners_that_read_differently_are_refuted() -> None:
    """Wrong: each runner is clean by itself, and nobody looks at both."""
    text = dumps_scenario(SCENARIO)
    replays = [replayed(ReferenceLoop(), text, runner=name) for name in RUNNERS]
    assert agreement(replays[:1]) is None
    result = agreement(replays)
    assert result is not None
    assert (result.part, result.verdict) == ("V1 with V2", Verdict.HELD)
    trace = replays[1].trace
    assert trace is not None
    index, step = next(
        (index, step)
        for index, step in enumerate(trace.steps)
        if isinstance(step, PassSeen) and step.worker and step.worker.target.rows
    )
    assert step.worker is not None
    worker = replace(step.worker, target=replace(step.worker.target, rows=(), slices=(), mask=()))
    steps = (*trace.steps[:index], replace(step, worker=worker), *trace.steps[index + 1 :])
    changed = replace(replays[1], trace=replace(trace, steps=steps))
    result = agreement([replays[0], changed])
    assert result is not None
    assert result.verdict is Verdict.REFUTED
    assert {found.claim for found in result.findings} == {"runners-agree"}


def test_runs_are_compared_as_far_as_both_go() -> None:
    """Wrong: a recording cut short differs from the whole run, or a shorter run does not."""
    whole, cut = trace_of(), trace_of(max_passes=2)
    target = ReferenceLoop()

    def compared(recorded: Trace, runner: Runner = "V1", max_passes: int = 50) -> Any:
        return replayed(
            target, dumps_trace(recorded), max_passes=max_passes, runner=runner
        ).comparison

    same = compared(whole)
    assert (same.num_steps, same.difference) == (len(whole.steps), None)
    assert same.recorded_on == "reference V1"
    assert compared(cut).difference is None
    assert compared(whole, max_passes=2).difference is None
    assert compared(whole, runner="V2") is None
    shorter = replace(whole, steps=whole.steps[:-2])
    assert compared(shorter).difference.place == ""


def test_a_finding_is_told_on_one_line() -> None:
    """Wrong: a reader cannot tell where a claim is broken, and by what."""
    assert describe_finding(FOUND) == (
        f"REFUTED no-stall [{FOUND.fingerprint}] pass 1, request 0, feature 1, loop of passes 1 to "
        "2: waits for room; observed: nothing moves; expected: a change"
    )


Invoke = Callable[..., Result]


@pytest.fixture
def invoke() -> Invoke:
    runner = CliRunner()

    def run(*arguments: object) -> Result:
        return runner.invoke(main, [str(argument) for argument in arguments])

    return run


@pytest.fixture
def scenario_file(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.json"
    path.write_text(dumps_scenario(SCENARIO))
    return path


def test_command_on_a_scenario(invoke: Invoke, scenario_file: Path, tmp_path: Path) -> None:
    """Wrong: the lines, the JSON file and the exit code disagree."""
    file = tmp_path / "results.json"
    result = invoke("replay", scenario_file, "--json", file)
    assert result.exit_code == 0, result.output
    head, *lines = result.output.splitlines()
    assert head == f"{scenario_file}: scenario on reference"
    passes = sum(step.kind == "pass" for step in trace_of().steps)
    runs = [f"{name}: HELD after {passes} passes, ends: idle" for name in ("V1", "V2")]
    assert lines == [*runs, "V1 with V2: HELD"]
    data = read_results(file, "replay")
    assert (data["kind"], data["exit_code"], data["counts"]) == ("replay", 0, {"HELD": 3})
    assert data["settings"] == {"file": str(scenario_file), "holds": "scenario"}
    (checked,) = data["targets"]
    assert checked["target"] == "reference"
    assert checked["violations"] == []
    assert [(o["part"], o["verdict"]) for o in checked["outcomes"]] == [
        ("V1", "HELD"),
        ("V2", "HELD"),
        ("V1 with V2", "HELD"),
    ]
    run = {"passes": passes, "ending": "idle"}
    assert data["details"]["runs"] == {"V1": run, "V2": run}


def test_command_on_a_trace(invoke: Invoke, scenario_file: Path, tmp_path: Path) -> None:
    """Wrong: a run cannot be written, read, and run again to the same steps."""
    trace_file, itf_file = tmp_path / "trace.json", tmp_path / "run.itf.json"
    arguments = ("--runner", "V2", "--trace", trace_file, "--itf", itf_file, "--device", "none")
    result = invoke("replay", scenario_file, *arguments)
    assert result.exit_code == 0, result.output
    document = load(trace_file)
    assert isinstance(document, TraceDocument)
    assert document.trace == trace_of("V2")
    assert len(json.loads(itf_file.read_text())["states"]) == len(document.steps)
    # With tensors now: what only they show is no difference.
    again = invoke("replay", trace_file)
    assert again.exit_code == 0, again.output
    steps = len(document.steps)
    assert again.output.splitlines()[2:] == [
        f"  equals the run recorded on reference V2 in {steps} steps"
    ]


def test_command_names_the_first_difference(invoke: Invoke, tmp_path: Path) -> None:
    """Wrong: two targets differ, and nobody says where."""
    trace = replace(trace_of(), target="vllm 0.24.0")
    index = next(i for i, step in enumerate(trace.steps) if isinstance(step, UpdateSeen))
    step = trace.steps[index]
    assert isinstance(step, UpdateSeen)
    outcome = replace(step.outcomes[0], num_emitted=9)
    changed = replace(step, outcomes=(outcome,))
    path, file = tmp_path / "trace.json", tmp_path / "results.json"
    steps = (*trace.steps[:index], changed, *trace.steps[index + 1 :])
    path.write_text(dumps_trace(replace(trace, steps=steps)))
    result = invoke("replay", path, "--json", file)
    assert result.exit_code == 0, result.output
    emitted = step.outcomes[0].num_emitted
    (line,) = result.output.splitlines()[2:]
    assert line == (
        f"  differs from the run recorded on vllm 0.24.0 V1, first in step {index} (update of pass "
        f"{step.index}): outcomes.0.num_emitted: recorded 9, now {emitted}"
    )
    (row,) = json.loads(file.read_text())["details"]["runs"].values()
    assert row["comparison"]["equal"] is False
    assert row["comparison"]["difference"] == {
        "step": index,
        "place": "outcomes.0.num_emitted",
        "recorded": "9",
        "now": str(emitted),
    }


def test_command_on_a_fault_of_the_loop(invoke: Invoke, tmp_path: Path) -> None:
    """Wrong: a broken claim exits with 0, or without the place and the values."""
    path, trace_file = tmp_path / "scenario.json", tmp_path / "trace.json"
    path.write_text(dumps_scenario(ABORTED))
    fault = "finish-keeps-references"
    result = invoke("replay", path, "--fault", fault, "--runner", "V1", "--trace", trace_file)
    assert result.exit_code == 1, result.output
    document = load(trace_file)
    assert "released" in {found.claim for found in document.findings}
    assert result.output.splitlines()[2:] == [
        f"  {describe_finding(found)}" for found in document.findings
    ]
    assert f"V1: REFUTED ({len({f.claim for f in document.findings})} claim" in result.output
    # Without the fault the findings are gone, and the file says so.
    mended = invoke("replay", trace_file)
    assert mended.exit_code == 0, mended.output
    assert "recorded, but did not show again: released: " in mended.output
    assert f"differs from the run recorded on reference +{fault} V1, first in" in mended.output


def test_command_that_gives_up_does_not_pass(invoke: Invoke, scenario_file: Path) -> None:
    """Wrong: a run that was cut short exits with 0."""
    result = invoke("replay", scenario_file, "--max-passes", 1)
    assert result.exit_code == 3, result.output
    assert "V1: UNKNOWN (the limit of passes was hit" in result.output


BOUNDARY = GatherCase((GatherRequest(0, 1, 2, (Feature(1, 1, "A"),)),), (), 1)


def _write_case(path: Path) -> None:
    found = finding(
        "boundary-miss-tolerated",
        BOUNDARY,
        observed="an error",
        expected="none",
        target="vllm 0.23.0 V2",
        mechanism="another mechanism",
    )
    path.write_text(case_files.dumps(BOUNDARY, (found,)))


def test_command_on_a_case(invoke: Invoke, tmp_path: Path) -> None:
    """Wrong: a function-level counterexample cannot be replayed."""
    path, file = tmp_path / "case.json", tmp_path / "results.json"
    _write_case(path)
    clean = invoke("replay", path)
    assert clean.exit_code == 0, clean.output
    assert clean.output.splitlines() == [
        f"{path}: gather case on reference",
        "V1: HELD",
        "V2: HELD",
        "V1 with V2: HELD",
        "recorded, but did not show again: boundary-miss-tolerated: another mechanism",
    ]
    broken = invoke(
        *("replay", path, "--fault", "no-boundary-tolerance", "--runner", "V2", "--json", file)
    )
    assert broken.exit_code == 1, broken.output
    assert "V2: REFUTED (1 claim)" in broken.output
    assert "REFUTED boundary-miss-tolerated by reference +no-boundary-tolerance V2" in broken.output
    (checked,) = json.loads(file.read_text())["targets"]
    assert [found["claim"] for found in checked["violations"]] == ["boundary-miss-tolerated"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.json",), "nowhere.json: cannot be read"),
        (("broken.json",), "broken.json: not JSON (line 1, column 2"),
        (("other.json",), "other.json: schema version 9"),
        (("scenario.json", "--device", "toaster"), "unknown device 'toaster'"),
        (("scenario.json", "--fault", "nope"), "unknown fault 'nope'"),
        (("scenario.json", "--trace", "x.json"), "choose it with --runner V1 or V2"),
        (("scenario.json", "--runner", "V1", "--trace", "/dev/null/x"), "there is no folder"),
        (("case.json", "--device", "none"), "needs tensors; use --device cpu"),
        (("case.json", "--itf", "x.json"), "leave out --trace and --itf"),
    ],
)
def test_command_refuses_bad_input_on_one_line(
    arguments: tuple[str, ...],
    words: str,
    invoke: Invoke,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Wrong: a traceback, or an exit code that reads as a verdict."""
    monkeypatch.chdir(tmp_path)
    Path("broken.json").write_text("{")
    Path("other.json").write_text('{"schema": 9, "kind": "scenario"}')
    Path("scenario.json").write_text(dumps_scenario(SCENARIO))
    Path("case.json").write_text(case_files.dumps(RowRangeCase((True,), 0, 1)))
    result = invoke("replay", *arguments)
    assert result.exit_code == 2, result.output
    (message,) = result.output.splitlines()
    assert message.startswith("Error: ")
    assert words in message
    assert not Path("x.json").exists()


def test_bench_measures_every_mode(invoke: Invoke, tmp_path: Path) -> None:
    """Wrong: a mode is left out, or a run of another scenario is measured."""
    file = tmp_path / "bench.json"
    result = invoke("bench", "loop", "--requests", 1, "--seconds", 0, "--json", file)
    assert result.exit_code == 0, result.output
    data = read_results(file, "bench")
    assert (data["kind"], data["settings"]) == ("bench", {"target": "reference", "requests": 1})
    details = data["details"]
    assert {"platform", "processor", "cores", "torch", "device"} <= set(details["machine"])
    rows = details["measured"]
    assert [(row["mode"], row["runner"]) for row in rows] == [
        (mode, runner)
        for runner in ("V1", "V2")
        for mode in (
            "recorder off",
            "recorder on",
            "recorder and monitor on",
            "recorder off, tensors on cpu",
        )
    ]
    assert len({row["passes"] for row in rows}) == 1
    assert rows[0]["passes"] > 100
    assert all(row["steps"] > row["passes"] for row in rows)
    assert all(len(row["cpu_seconds"]) >= 3 for row in rows)
    assert [row["ratio"] for row in rows if row["mode"] == "recorder off"] == [1, 1]
    assert all(row["mode"] in result.output for row in rows)
    bad = invoke("bench", "loop", "--device", "toaster")
    assert bad.exit_code == 2
    assert bad.output == "Error: unknown device 'toaster'; use cpu or cuda\n"


def test_the_bench_scenario_meets_what_slows_an_engine() -> None:
    """Wrong: speed is measured on a run without hits, evictions, waiting or drafts."""
    scenario = benchmark_scenario(4)
    recording = record(ReferenceLoop(), scenario, "V1", monitor=LoopMonitor(scenario, "V1"))
    assert (recording.trace.ending, recording.findings) == ("idle", ())
    passes = [step for step in recording.trace.steps if isinstance(step, PassSeen)]
    answers = {(call.method, call.answer) for step in passes for call in step.calls}
    assert {("check_and_update_cache", True), ("can_allocate", False)} <= answers
    assert any(step.notices for step in passes)
    assert any(scheduled.num_draft_tokens for step in passes for scheduled in step.scheduled)


def test_a_recorded_run_is_judged_as_it_stands(tmp_path: Path) -> None:
    """Wrong: a run from elsewhere could be judged only by running it on another engine."""
    scenario = FULL_CACHE
    trace = record(ReferenceLoop(["deferred-free-margin"]), scenario, "V1", max_passes=50).trace
    file = tmp_path / "run.json"
    file.write_text(dumps_trace(trace), encoding="utf-8")
    result = CliRunner().invoke(main, ["replay", str(file), "--target", "recorded"])
    assert result.exit_code == 1, result.output
    assert "no-stall" in result.output
    result = CliRunner().invoke(main, ["replay", str(file), "--device", "none"])
    assert "recorded, but did not show again" not in result.output
    assert "REFUTED" not in result.output


def test_a_run_outside_an_assumption_says_so_before_its_verdict(tmp_path: Path) -> None:
    """Wrong: a right engine looks refuted, and nobody says that the file breaks an assumption."""
    first = ScenarioRequest(3, (Feature(0, 3, "X"),), contents=("red",))
    unlike = replace(SCENARIO, requests=(first, replace(first, contents=("blue",), arrival=1)))
    file = tmp_path / "unlike.json"
    file.write_text(dumps_scenario(unlike))
    lines = CliRunner().invoke(main, ["replay", str(file), "--runner", "V1"]).output.splitlines()
    outside = next(i for i, line in enumerate(lines) if "outside the assumption" in line)
    verdict = next(i for i, line in enumerate(lines) if line.startswith("V1: "))
    assert outside < verdict
    assert "hash-is-content" in lines[outside]
    assert "fresh-tensor" in lines[outside]


def test_a_run_within_all_assumptions_names_none(tmp_path: Path) -> None:
    """Wrong: a reader learns to skip the line that matters."""
    file = tmp_path / "alike.json"
    file.write_text(dumps_scenario(SCENARIO))
    assert "assumption" not in CliRunner().invoke(main, ["replay", str(file)]).output
