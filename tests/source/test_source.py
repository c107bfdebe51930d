"""Source proofs: right code is proved, wrong code refuted and replayed, unmodelled code unknown."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from proofs.commands.main import main
from proofs.source.answers import Answers
from proofs.source.check import SourceReport, check_source
from proofs.source.code.recorders import OVERRIDES
from proofs.source.code.release import ReleaseSource
from proofs.source.here import pieces_of
from proofs.source.jobs import Scope
from proofs.source.passes.run_scenario import FEW_PASSES
from proofs.source.source_text import checked_source, print_source_report
from spec.errors import InputError
from spec.functions.case_files import dumps, loads
from spec.functions.cases import BookCase, BookOperation, FreeCase, GatherCase, WindowCase
from spec.verdict import Verdict
from tests.support.fake_release import write_release

pytestmark = pytest.mark.usefixtures("cache_of_this_run")

PARTS = ("free", "window", "row_range", "V1", "book", "encoder_decoder_book")


def _report(package: Path, *parts: str) -> SourceReport:
    return check_source(
        package, "fake", parts=parts or PARTS, max_features=2, workers=1, answers=Answers()
    )


def _verdicts(report: SourceReport) -> dict[str, set[Verdict]]:
    found: dict[str, set[Verdict]] = {}
    for result in report.results:
        found.setdefault(result.claim, set()).add(result.verdict)
    return found


def _finding_case(report: SourceReport, claim: str) -> object:
    (case,) = {r.finding.case for r in report.results if r.claim == claim and r.finding}
    return case


def _targets(report: SourceReport) -> set[str]:
    """What findings were made on, each the part of its result: reports tell the part by it."""
    refuted = [r for r in report.results if r.finding is not None]
    assert all(r.finding and r.finding.target == f"fake {r.part}" for r in refuted)
    return {r.finding.target for r in refuted if r.finding}


def test_right_code_is_proved_on_every_part(tmp_path: Path) -> None:
    """A proof that failed on right code would say nothing when it fails on a release."""
    report = _report(write_release(tmp_path))
    wrong = [r for r in report.results if r.verdict is not Verdict.PROVED]
    assert not wrong
    assert {r.part for r in report.results} == {
        *PARTS,
        "free past the prompt",
        "book of unlike contents",
    }
    assert all(r.z3 == r.cvc5 == "unsat" for r in report.results)
    assert all(r.counts.unfinished == 0 and r.counts.paths > 0 for r in report.results)


def test_the_exact_rules_are_printed(tmp_path: Path) -> None:
    """The formula is the answer to a reviewer's first question: what does this code do?"""
    report = _report(write_release(tmp_path))
    details = {r.claim: r.detail for r in report.results if r.is_rule}
    assert details["rule:reference_may_go"] == (
        "(is_encoder_decoder and num_computed_tokens >= 1) or (num_computed_tokens >= length + "
        "num_output_placeholders + offset); the rule with margin 0"
    )
    assert details["rule:miss_tolerated_v1"] == "offset >= num_computed + num_scheduled"


def test_a_margin_is_recognised_and_stays_safe(tmp_path: Path) -> None:
    """A margin only holds longer: another instance of the rule, and no claim of safety broken."""
    margin = "end + (1 if self.use_eagle else 0) <= seen"
    package = write_release(tmp_path, scheduler=("end <= seen", margin))
    report = _report(package, "free")
    assert _verdicts(report)["freed-not-needed"] == {Verdict.PROVED}
    (rule,) = (r for r in report.results if r.is_rule)
    assert rule.verdict is Verdict.PROVED
    assert rule.detail.endswith("the rule with margin 1 with a drafter, else 0")


def test_ignored_placeholders_are_refuted_but_safe_in_the_prompt(tmp_path: Path) -> None:
    """The exact condition: wrong in general, right while features lie in the prompt (45347)."""
    package = write_release(tmp_path, scheduler=(" - request.num_output_placeholders", ""))
    report = _report(package, "free")
    assert _verdicts(report)["freed-not-needed"] == {Verdict.REFUTED, Verdict.PROVED}
    case = _finding_case(report, "freed-not-needed")
    assert isinstance(case, FreeCase)
    assert (len(case.features), case.features[0].end) == (1, 1)
    assert case.progress[0].num_drafts_in_flight == 1
    assert _targets(report) == {"fake free past the prompt"}
    (rule,) = (r for r in report.results if r.is_rule)
    assert rule.verdict is Verdict.REFUTED
    assert rule.detail.endswith("but placeholders ignored")


def test_a_raising_boundary_miss_is_refuted_with_one_feature(tmp_path: Path) -> None:
    """The fault of 0.23.0 (46315), shrunk to the smallest batch that shows it."""
    package = write_release(
        tmp_path,
        gpu_model_runner=("position.offset >= state.num_computed_tokens + n", "False"),
    )
    report = _report(package, "V1")
    case = _finding_case(report, "boundary-miss-tolerated")
    assert isinstance(case, GatherCase)
    (request,) = case.requests
    assert [f.describe() for f in request.features] == ["A[1,2)"]
    assert (request.num_computed_tokens, request.num_scheduled_tokens) == (0, 1)
    assert case.draft_lookahead == 1
    assert _targets(report) == {"fake V1"}
    details = {r.claim: r.detail for r in report.results if r.is_rule}
    assert details == {"rule:miss_tolerated_v1": "never"}


def test_a_late_window_is_refuted(tmp_path: Path) -> None:
    """A window that starts one feature late reads a feature as text."""
    package = write_release(
        tmp_path, utils=("bisect_right(ends, start)", "bisect_right(ends, start + 1)")
    )
    report = _report(package, "window")
    assert _verdicts(report)["window-exact"] == {Verdict.REFUTED}
    assert isinstance(_finding_case(report, "window-exact"), WindowCase)
    assert _targets(report) == {"fake window"}


@pytest.mark.parametrize(
    ("part", "claim", "change"),
    [
        ("book", "evicted-not-live", (" if name not in self.cached]", "]")),
        (
            "book",
            "slots-conserved",
            ("            self.num_freeable_slots -= self", "            self"),
        ),
        ("book", "held-until-last-use", ("who == holder and what == name", "False")),
        ("book", "book-exact", ("while wanted > self", "while wanted >= self")),
        ("book", "released", ("        self.cached[name].discard(holder)\n", "")),
        ("book", "book-exact", ("if wanted > budget:", "if wanted > budget + 1:")),
        ("book", "book-exact", ("        wanted += before\n", "")),
        ("encoder_decoder_book", "book-exact", ("wanted <= budget and ", "")),
        ("encoder_decoder_book", "book-exact", ("wanted + before <=", "wanted <=")),
        ("encoder_decoder_book", "slots-conserved", ("if held in self.taken:", "if True:")),
    ],
)
def test_a_broken_book_is_refuted(
    tmp_path: Path, part: str, claim: str, change: tuple[str, str]
) -> None:
    """Each duty of the book, broken, is found from some initial book and replayed."""
    package = write_release(tmp_path, encoder_cache_manager=change)
    pieces = pieces_of(ReleaseSource(package, OVERRIDES), "fake", (part,), Scope(2, FEW_PASSES))
    found = (piece for piece in pieces if piece.claim == claim and piece.finding is not None)
    first = next(found)
    assert first.verdict is Verdict.REFUTED
    assert first.finding is not None
    assert first.finding.claim == claim
    assert first.finding.target == f"fake {first.part}"
    loads(dumps(first.finding.case))


def test_a_broken_book_is_reported_by_its_smallest_counterexample(tmp_path: Path) -> None:
    """Wrong: of all programs that break a duty, the report shows one that is hard to follow."""
    change = ("if wanted > budget:", "if wanted > budget + 1:")
    report = _report(write_release(tmp_path, encoder_cache_manager=change), "book")
    assert "fake book" in _targets(report)
    case = _finding_case(report, "book-exact")
    assert isinstance(case, BookCase)
    assert len(case.operations) == 1


def test_a_counterexample_of_a_book_holds_nothing_that_the_fault_does_not_need(
    tmp_path: Path,
) -> None:
    """A second item, taken or refused, sends the reader after the wrong cause."""
    package = write_release(tmp_path, encoder_cache_manager=("if held in self.taken:", "if True:"))
    case = _finding_case(_report(package, "encoder_decoder_book"), "slots-conserved")
    assert isinstance(case, BookCase)
    assert [len(features) for features in case.requests] == [1]
    assert case.cache_size == 1
    assert case.operations == (BookOperation("take"), BookOperation("drop"), BookOperation("drop"))


def test_a_mask_counted_from_its_end_is_refuted(tmp_path: Path) -> None:
    """Rows of an empty range at the start of a mask (fixed by 0.20.2)."""
    package = write_release(tmp_path, inputs=(" if position > 0 else 0", ""))
    report = _report(package, "row_range")
    assert _verdicts(report)["row-range-exact"] == {Verdict.REFUTED}
    assert _targets(report) == {"fake row_range"}


@pytest.mark.parametrize(
    "change",
    [
        ("seen = ", "seen = self.something_new + "),
        ("end <= seen", "end <= max_number_of_tokens(seen)"),
        ("end <= seen", "end in range(seen)"),
    ],
)
def test_unmodelled_source_is_unknown(tmp_path: Path, change: tuple[str, str]) -> None:
    """An attribute, a name or an operation that is not modelled never passes as a proof."""
    report = _report(write_release(tmp_path, scheduler=change), "free")
    assert _verdicts(report)["freed-not-needed"] == {Verdict.UNKNOWN}
    assert all("not modelled" in r.detail for r in report.results)


def test_absent_parts_are_named(tmp_path: Path) -> None:
    """A part that a release lacks is not silently left out."""
    report = check_source(write_release(tmp_path), "fake", parts=("V2",), workers=1)
    assert set(report.unavailable) == {"V2"}
    assert not report.results


def test_changed_trees_do_not_touch_the_files(tmp_path: Path) -> None:
    """Mutants live in memory only."""
    package = write_release(tmp_path)
    release = ReleaseSource(package, OVERRIDES)
    name = "vllm.v1.core.sched.scheduler"
    before = ast.dump(release.tree(name))
    changed = release.with_change(name, ast.parse("class Scheduler: pass"))
    assert ast.dump(release.tree(name)) == before
    assert changed.module(name).definition("Scheduler", "_free_encoder_inputs") is None


def test_source_that_does_not_parse_is_one_clear_error(tmp_path: Path) -> None:
    """A half-edited checkout must not end in a traceback."""
    package = write_release(tmp_path, scheduler=("class Scheduler:", "class Scheduler"))
    with pytest.raises(InputError, match=r"scheduler\.py: cannot be read as Python source"):
        _report(package, "free")


def test_report_says_everything_in_lines_and_json(tmp_path: Path) -> None:
    """What is printed and what is written agree, and both say what failed."""
    package = write_release(tmp_path, scheduler=(" - request.num_output_placeholders", ""))
    report = _report(package, "free")
    console = Console(record=True, width=200, file=None, quiet=False)
    with console.capture() as captured:
        print_source_report(report, console)
    text = captured.get()
    assert "is not spec rule reference_may_go" in text
    assert "observed: moment 0: the reference to A[0,1) is dropped" in text
    checked = checked_source(report)
    failed = [o for o in checked.outcomes if o.verdict is Verdict.REFUTED and o.fingerprints]
    (found,) = (v for v in checked.violations if v.fingerprint in failed[0].fingerprints)
    assert found.claim == "freed-not-needed"
    assert failed[0].proof is not None
    assert failed[0].proof.solvers == {"z3": "sat", "cvc5": "sat"}


def test_command_reports_wrong_input_without_a_traceback(tmp_path: Path) -> None:
    """An unknown release, an empty folder and a wrong option exit with 2 and one line."""
    runner = CliRunner()
    empty = runner.invoke(main, ["prove", "--source-of", str(tmp_path)])
    assert empty.exit_code == 2
    assert "no vLLM there" in empty.output
    mixed = runner.invoke(main, ["prove", "--source-of", "0.33.0", "--group", "window"])
    assert mixed.exit_code == 2
    assert "--group cannot be used with --source-of" in mixed.output


def test_command_exits_with_the_worst_verdict(tmp_path: Path) -> None:
    """CI reads the exit code: 0 for right code, 1 for refuted claims."""
    target = tmp_path / "report.json"
    package = write_release(tmp_path, scheduler=(" - request.num_output_placeholders", ""))
    result = CliRunner().invoke(
        main,
        [
            "prove",
            "--source-of",
            str(package.parent),
            "--max-features",
            "1",
            "--json",
            str(target),
        ],
    )
    assert result.exit_code == 1
    assert json.loads(target.read_text())["kind"] == "prove-source"
