# ruff: noqa: D102 - the stubs' methods are those of the protocol
"""The engine behind ``residency check``: what it finds, how small, and what it never hides."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from impl.target import Part, Runner
from impl.targets.functions import ReferenceTarget
from impl.tensors import TensorSettings
from proofs.commands.check import check
from proofs.results.outcome import Outcome
from proofs.results.result_table import result_table
from proofs.search.functions.check import run_check
from proofs.search.functions.check_text import checked_functions
from proofs.search.functions.parts import CLAIMS_OF_PART, WITHOUT, CheckedPart, findings_on
from proofs.search.functions.premises import premise_happens
from proofs.search.functions.results import ALL_PARTS, CheckReport, CheckSettings
from spec.claims.assumptions import assumption
from spec.claims.texts import FUNCTION_CLAIMS
from spec.errors import InputError
from spec.functions.case_files import loads
from spec.functions.cases import BookCase, FreeCase, GatherCase, RowRangeCase, WindowCase
from spec.functions.findings import Finding
from spec.functions.gather import read_features
from spec.functions.observations import (
    BookObservation,
    FreeObservation,
    GatherObservation,
    RangeObservation,
)
from spec.record.steps import ErrorSeen
from spec.verdict import Verdict, exit_code
from tests.support.fake_release import write_release
from tests.support.results_files import read_results

WHOLE_STEP_CLAIMS = {"target-resident", "drafter-resident-or-boundary"}


class Stub:
    """The reference's answers, which tests corrupt by overriding one part."""

    name = "stub"

    def __init__(self) -> None:
        self.right = ReferenceTarget()

    def missing(self, part: Part) -> str | None:
        return None

    def gather(
        self, case: GatherCase, runner: Runner, tensors: TensorSettings
    ) -> GatherObservation:
        return self.right.gather(case, runner, tensors)

    def free(self, case: FreeCase) -> FreeObservation:
        return self.right.free(case)

    def book(self, case: BookCase) -> BookObservation:
        return self.right.book(case)

    def window(self, case: WindowCase) -> RangeObservation:
        return self.right.window(case)

    def row_range(self, case: RowRangeCase) -> RangeObservation:
        return self.right.row_range(case)


class ManyFaults(Stub):
    """V1 raises on a boundary miss and swallows interior ones; V2 and two more parts are wrong."""

    def gather(
        self, case: GatherCase, runner: Runner, tensors: TensorSettings
    ) -> GatherObservation:
        seen = super().gather(case, runner, tensors)
        if runner == "V2":
            return replace(seen, rows=tuple(reversed(seen.rows)))
        if seen.error is not None:
            positions = case.total_num_scheduled_tokens
            return GatherObservation((), (), (False,) * positions, (None,) * positions)
        for read in read_features(case):
            if read.boundary and not read.resident:
                return GatherObservation(error=ErrorSeen("RuntimeError", read.spec.identifier))
        return seen

    def window(self, case: WindowCase) -> RangeObservation:
        seen = super().window(case)
        return replace(seen, high=max(seen.low, seen.high - 1))

    def row_range(self, case: RowRangeCase) -> RangeObservation:
        return RangeObservation(0, 0, ErrorSeen("IndexError", "out of range"))


MANY_PARTS: tuple[CheckedPart, ...] = ("V1", "V2", "V1 with V2", "window", "row_range")


def _run(target: Stub | ReferenceTarget, *parts: CheckedPart, **more: object) -> CheckReport:
    settings = CheckSettings(parts=parts or ALL_PARTS, **more)  # type: ignore[arg-type]
    return run_check(target, settings)


def _verdicts(report: CheckReport) -> dict[tuple[str, str], Verdict | None]:
    return {(result.claim, result.part): result.verdict for result in report.results}


@pytest.fixture(scope="module")
def many_faults() -> CheckReport:
    return _run(ManyFaults(), *MANY_PARTS, examples=150)


def test_every_claim_on_single_functions_is_checked_somewhere() -> None:
    """Wrong: a claim that nobody checks passes for ever."""
    checked = {claim for claims in CLAIMS_OF_PART.values() for claim in claims}
    assert checked == {claim.id for claim in FUNCTION_CLAIMS.values()} - WHOLE_STEP_CLAIMS
    for assumption_id in WITHOUT.values():
        assumption(assumption_id)


@pytest.mark.parametrize(
    "claim",
    [c for c in FUNCTION_CLAIMS.values() if c.id not in WHOLE_STEP_CLAIMS],
    ids=lambda claim: claim.id,
)
def test_every_witness_meets_its_premise(claim: object) -> None:
    """Wrong: a premise counter that counts other cases than the claim is about."""
    assert premise_happens(claim.id, claim.witness)  # type: ignore[attr-defined]


def test_the_reference_is_clean_and_nothing_is_vacuous() -> None:
    """Wrong: a false alarm, or a claim that holds for want of cases."""
    report = _run(ReferenceTarget())
    assert not report.findings
    assert {result.verdict for result in report.results} == {Verdict.HELD}
    assert all(result.premises >= 5 for result in report.results), report.results
    assert {result.part for result in report.results} == set(ALL_PARTS)


def test_several_faults_in_one_run_are_all_found(many_faults: CheckReport) -> None:
    """Wrong: one violated claim hides another."""
    refuted = {key for key, verdict in _verdicts(many_faults).items() if verdict is Verdict.REFUTED}
    assert refuted >= {
        ("boundary-miss-tolerated", "V1"),
        ("interior-miss-raises", "V1"),
        ("rows-exact", "V2"),
        ("window-exact", "window"),
        ("row-range-exact", "row_range"),
    }
    assert ("mask-exact", "V2") not in refuted
    assert ("boundary-miss-tolerated", "V2") not in refuted
    assert exit_code(many_faults.verdicts) == 1


def test_smallest_cases_are_small(many_faults: CheckReport) -> None:
    """Wrong: a counterexample that a reviewer has to take apart first."""
    by_claim = {(f.claim, f.target): f for f in many_faults.findings}
    boundary = by_claim["boundary-miss-tolerated", "stub V1"].case
    assert isinstance(boundary, GatherCase)
    assert len(boundary.requests) == 1
    assert len(boundary.requests[0].features) == 1
    assert boundary.total_num_scheduled_tokens == 1
    reversed_rows = by_claim["rows-exact", "stub V2"].case
    assert isinstance(reversed_rows, GatherCase)
    assert reversed_rows.total_num_scheduled_tokens == 2
    ranges = {f.case for f in many_faults.findings if f.claim == "row-range-exact"}
    assert ranges == {RowRangeCase((False,), 0, 0), RowRangeCase((False,), 0, 1)}


def test_every_finding_is_what_the_target_does_with_its_case(many_faults: CheckReport) -> None:
    """Wrong: a shrunk case whose finding was made on another case, or with another claim."""
    target, tensors = ManyFaults(), TensorSettings()
    for finding in many_faults.findings:
        finding.case.validate()
        part = next(p for p in MANY_PARTS if finding.target == f"stub {p}")
        assert finding in findings_on(target, part, finding.case, tensors)


def test_the_same_seed_gives_the_same_report(many_faults: CheckReport) -> None:
    """Wrong: a finding in a report that nobody can get again."""
    again = _run(ManyFaults(), *MANY_PARTS, examples=150)
    assert again.findings == many_faults.findings
    assert again.results == many_faults.results


def test_a_chosen_claim_is_the_only_one_reported() -> None:
    """Wrong: --claims lets other claims' violations into the results, or hides the chosen one's."""
    report = _run(ManyFaults(), claims=("interior-miss-raises",), examples=100)
    assert {result.claim for result in report.results} == {"interior-miss-raises"}
    assert {finding.claim for finding in report.findings} == {"interior-miss-raises"}


def test_a_premise_that_never_happens_is_vacuous() -> None:
    """Wrong: HELD, although the claim was never put to the test."""
    report = _run(ReferenceTarget(), "book", claims=("evicted-not-live",), examples=1)
    (result,) = report.results
    assert (result.verdict, result.cases, result.premises) == (Verdict.VACUOUS, 1, 0)
    assert exit_code(report.verdicts) == 4


def test_a_missing_part_is_vacuous_and_no_success() -> None:
    """Wrong: a claim that was put to no case counts as checked, beside others that held."""

    class Lacking(Stub):
        def missing(self, part: Part) -> str | None:
            return "this release has no V2" if part == "V2" else None

    report = _run(Lacking(), "V2", "V1 with V2")
    assert {(r.verdict, r.reason) for r in report.results} == {
        (Verdict.VACUOUS, "this release has no V2")
    }
    assert exit_code(report.verdicts) == 4
    result = _run(Lacking(), "V1", "V2", claims=("rows-exact",), examples=50)
    assert _verdicts(result) == {
        ("rows-exact", "V1"): Verdict.HELD,
        ("rows-exact", "V2"): Verdict.VACUOUS,
    }
    assert exit_code(result.verdicts) == 4


def test_a_target_that_breaks_is_an_error_on_that_part_only() -> None:
    """Wrong: a crash of the adapter passes, or stops all other parts."""

    class Breaking(Stub):
        def window(self, case: WindowCase) -> RangeObservation:
            raise RuntimeError("adapter bug")

    report = _run(Breaking(), "window", "row_range")
    verdicts = _verdicts(report)
    assert verdicts["window-exact", "window"] is Verdict.ERROR
    assert verdicts["row-range-exact", "row_range"] is Verdict.HELD
    assert "RuntimeError: adapter bug" in {result.reason for result in report.results}
    assert exit_code(report.verdicts) == 5


def test_a_target_that_refuses_every_case_did_no_work() -> None:
    """Wrong: a part whose cases were all refused passes."""

    class Refusing(Stub):
        def free(self, case: FreeCase) -> FreeObservation:
            raise InputError("cannot be given")

    report = _run(Refusing(), "free")
    assert {(r.verdict, r.reason, r.cases) for r in report.results} == {
        (Verdict.ERROR, "cannot be given", 0)
    }


def test_a_target_that_answers_twice_differently_is_still_refuted() -> None:
    """Wrong: a violation that does not come again is forgotten, or crashes the check."""

    class Once(Stub):
        seen = 0

        def row_range(self, case: RowRangeCase) -> RangeObservation:
            self.seen += 1
            return RangeObservation(9, 9) if self.seen == 7 else super().row_range(case)

    report = _run(Once(), "row_range")
    assert report.results[0].verdict is Verdict.REFUTED
    assert len(report.findings) == 1


def test_a_violation_of_a_broken_assumption_names_it() -> None:
    """Wrong: what breaks only without an assumption reads like a plain violation."""
    target = ReferenceTarget(faults=frozenset({"own-size-free"}))
    report = _run(target, "book", "book of unlike contents", "encoder_decoder_book")
    refuted = [result for result in report.results if result.verdict is Verdict.REFUTED]
    assert [(r.claim, r.part, r.without) for r in refuted] == [
        ("slots-conserved", "book of unlike contents", "hash-is-content")
    ]


def test_an_interrupted_check_reports_what_it_found() -> None:
    """Wrong: Ctrl-C loses the findings, or lets an unfinished part pass."""
    calls = iter(range(10**9))
    report = run_check(
        ManyFaults(),
        CheckSettings(parts=("V1", "window")),
        should_stop=lambda: next(calls) >= 150,
    )
    assert report.interrupted
    verdicts = _verdicts(report)
    assert verdicts["boundary-miss-tolerated", "V1"] is Verdict.REFUTED
    assert verdicts["rows-exact", "V1"] is Verdict.UNKNOWN
    assert verdicts["window-exact", "window"] is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (CheckSettings(claims=("nope",)), "unknown claim 'nope'; known claims: book-exact"),
        (CheckSettings(claims=("target-resident",)), "about whole runs, not single functions"),
        (CheckSettings(examples=0), "0 examples check nothing"),
        (CheckSettings(tensors=TensorSettings(device="toaster")), "unknown device 'toaster'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: CheckSettings, words: str) -> None:
    """Wrong: a typing error in a claim's name checks nothing and passes."""
    with pytest.raises(InputError, match=words):
        run_check(ReferenceTarget(), settings)


Invoke = Callable[..., Result]


@pytest.fixture
def invoke() -> Invoke:
    runner = CliRunner()

    def run(*arguments: str) -> Result:
        return runner.invoke(check, arguments)

    return run


def test_command_on_a_clean_target(invoke: Invoke, tmp_path: Path) -> None:
    """Wrong: the table, the JSON file and the exit code disagree."""
    file = tmp_path / "check.json"
    result = invoke("--claims", "row-range-exact,window-exact", "--json", str(file))
    assert result.exit_code == 0, result.output
    data = read_results(file, "check-functions")
    (checked,) = data["targets"]
    assert (data["kind"], checked["target"]) == ("check-functions", "reference")
    assert checked["violations"] == []
    assert [(row["claim"], row["part"], row["verdict"]) for row in checked["outcomes"]] == [
        ("window-exact", "window", "HELD"),
        ("row-range-exact", "row_range", "HELD"),
    ]
    assert [path.name for path in file.parent.iterdir()] == ["check.json"]


def test_command_on_a_fault(invoke: Invoke, tmp_path: Path) -> None:
    """Wrong: a violation without its smallest case, or a JSON file that cannot be read back."""
    file = tmp_path / "check.json"
    result = invoke(
        *("--fault", "no-boundary-tolerance", "--claims", "boundary-miss-tolerated"),
        *("--runner", "V2", "--json", str(file)),
    )
    assert result.exit_code == 1, result.output
    assert "REFUTED boundary-miss-tolerated by reference +no-boundary-tolerance V2" in result.output
    assert "0 computed + 1 scheduled of 2 with A[1,2); resident: nothing" in result.output
    assert "observed: RuntimeError" in result.output
    (checked,) = read_results(file, "check-functions")["targets"]
    (row,), (finding,) = checked["outcomes"], checked["violations"]
    assert row["fingerprints"] == [finding["fingerprint"]]
    head, line = result.output.splitlines()[1:3]
    assert head.split("  ")[0] == "claim"
    assert line[head.index("faults") :] == finding["fingerprint"]
    assert result.output.splitlines()[-1] == "1 question: 1 REFUTED (1 distinct fault)"
    trace = finding["document"]
    (read,) = loads(json.dumps(trace)).findings
    assert isinstance(read, Finding)
    assert read.claim == "boundary-miss-tolerated"


def test_command_says_which_assumption_a_case_breaks(invoke: Invoke, tmp_path: Path) -> None:
    """Wrong: a case outside the engine's contract reads as a plain bug, here or on its page."""
    result = invoke(
        *("--fault", "free-ignores-placeholders", "--claims", "freed-not-needed"),
        *("--report", str(tmp_path)),
    )
    assert "\nREFUTED (without features-in-prompt) freed-not-needed by reference" in result.output
    assert "2 questions: 1 HELD, 1 REFUTED (1 distinct fault)\n" in result.output
    (page,) = tmp_path.glob("*/report.md")
    (html,) = tmp_path.glob("*/report.html")
    assert "Only without the assumption features-in-prompt: " in html.read_text("utf-8")
    assert f'href="{page.parent.name}/report.html"' in (tmp_path / "index.html").read_text("utf-8")
    assert (
        page.read_text()
        .splitlines()[2]
        .startswith(
            "Only without the assumption `features-in-prompt` (every feature ends at or before "
        )
    )


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_on_a_terminal_shows_faults_and_readable_parts(width: int) -> None:
    """Wrong: a reader cannot tell which questions one fault answers, or reads our ids."""
    report = _run(
        ReferenceTarget(frozenset({"encoder-decoder-credit"})), "encoder_decoder_book", examples=30
    )
    console = Console(width=width, force_terminal=True, color_system=None, file=io.StringIO())
    with console.capture() as captured:
        console.print(result_table(report.results, "title"))
    text = captured.get()
    assert {finding.fingerprint for finding in report.findings} == {
        word for line in text.splitlines() if "REFUTED" in line for word in line.split()[-1:]
    }
    assert "encoder_decoder_book" not in text
    assert checked_functions(report).outcomes[0].part == "encoder_decoder_book"


def test_the_table_on_a_terminal_holds_text_and_nothing_that_is_obeyed() -> None:
    """Wrong: a name clears the screen, colours the table, or gives GitHub Actions a command."""
    name = "::error::[red]x[/]\x1b[2J##[group]" + " ::warning::" * 20
    result = Outcome(name, name, Verdict.HELD, reason=name)
    console = Console(width=60, force_terminal=True, color_system=None, file=io.StringIO())
    with console.capture() as captured:
        console.print(result_table([result], name))
    text = captured.get()
    assert "::" not in text
    assert "##[" not in text
    assert "\x1b[2J" not in text
    assert "[red]x[/]" in text


def test_command_that_runs_nothing_fails(invoke: Invoke) -> None:
    """Wrong: doing no work exits with 0."""
    result = invoke("--claims", "runners-agree", "--runner", "V1")
    assert result.exit_code == 5
    assert "Nothing was run." in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--claims", "nope"), "unknown claim 'nope'"),
        (("--claims", "no-stall"), "`residency check --level loop` checks it"),
        (("--level", "loop", "--claims", "window-exact"), "check it without --level loop"),
        (("--claims", ","), "--claims is empty"),
        (("--fault", "nope"), "unknown fault 'nope'"),
        (("--target", "vllm"), "needs one of --release R and --source DIR"),
        (
            ("--target", "vllm", "--release", "0.1", "--source", "."),
            "one --release or one",
        ),
        (("--release", "0.24.0"), "add --target vllm"),
        (("--level", "source"), "add --target vllm"),
        (("--target", "vllm", "--source", ".", "--fault", "x"), "--fault breaks the reference"),
        (("--device", "toaster"), "unknown device 'toaster'"),
        (("--json", "/dev/null/x.json", "--claims", "row-range-exact"), "there is no folder"),
    ],
)
def test_command_refuses_bad_input_on_one_line(
    arguments: tuple[str, ...], words: str, invoke: Invoke
) -> None:
    """Wrong: a traceback, or an exit code that reads as a verdict."""
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    (message,) = [line for line in result.output.splitlines() if line.startswith("Error: ")]
    assert words in message
    assert "Traceback" not in result.output


def test_command_on_source(invoke: Invoke, tmp_path: Path) -> None:
    """Wrong: the source level says something else than `prove`, or its findings get no report."""
    package = write_release(tmp_path, scheduler=(" - request.num_output_placeholders", ""))
    file, folder = tmp_path / "source.json", tmp_path / "report"
    vllm = ("--target", "vllm", "--source", str(package.parent), "--level", "source")
    result = invoke(
        *(*vllm, "--claims", "freed-not-needed,window-exact", "--runner", "V1"),
        *("--json", str(file), "--report", str(folder)),
    )
    assert result.exit_code == 1, result.output
    data = read_results(file, "prove-source")
    (checked,) = data["targets"]
    asked = {(o["claim"], o["verdict"]) for o in checked["outcomes"] if o["verdict"] is not None}
    assert asked == {
        ("freed-not-needed", "REFUTED"),
        ("freed-not-needed", "PROVED"),
        ("window-exact", "PROVED"),
    }
    assert "observed: moment 0: the reference to A[0,1) is dropped" in result.output
    assert "exact rules" not in result.output
    (page,) = folder.glob("freed-not-needed-free-past-the-prompt-*/report.md")
    ready = page.parent / "test_repro.py"
    assert "def test_freed_not_needed_free_past_the_prompt(" in ready.read_text()
    assert "breaks an assumption on purpose" in page.read_text()
    assert page.read_text().splitlines()[2].startswith("Only without the assumption")
    assert f"wrote {ready}" in result.output


def test_command_on_source_that_asks_nothing_fails(invoke: Invoke, tmp_path: Path) -> None:
    """Wrong: claims that no question on the source is about pass."""
    package = write_release(tmp_path)
    shutil.rmtree(package / "v1")
    (package / "v1" / "core").mkdir(parents=True)
    vllm = ("--target", "vllm", "--source", str(package.parent))
    result = invoke(*vllm, "--level", "source", "--runner", "V1", "--claims", "runners-agree")
    assert result.exit_code == 5, result.output
    assert "Nothing was run." in result.output
    unknown = invoke(*vllm, "--level", "source", "--claims", "nope")
    assert unknown.exit_code == 2
    assert "unknown claim 'nope'" in unknown.output
