"""No sentence of a report speaks against another one, or against what the run did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from proofs.commands.main import main
from proofs.commands.prove import parts_of_claims
from proofs.describe.scenarios import run_legend
from proofs.drive.origin import Origin
from proofs.report.near.neighbours import variations
from proofs.report.near.rerun import reference_rerun
from proofs.report.pages.account import Account, account_of
from proofs.report.pages.reproduce import Links
from proofs.report.pages.run_report import run_markdown, run_page, write_run_reports
from proofs.report.ready.reference import reference_test
from proofs.report.story.timeline import StepRow
from proofs.report.story.timeline_build import timeline
from proofs.report.text.public import named_text
from proofs.results.publish import tell_pages
from proofs.search.runs.results import LoopCounterexample
from spec.errors import InputError
from spec.functions.case_files import require_writable
from spec.record.config import EngineConfig
from spec.record.document import TraceDocument, load
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest
from spec.record.steps import PassSeen
from tests.recorders.record_picture import RECORD
from tests.support.report_runs import account_of_switch, of_switch, violations

NEVER_ENCODED = ("boundary-never-encoded",)
AT_THE_END = Scenario(
    EngineConfig(
        max_num_batched_tokens=2,
        encoder_cache_size=1,
        encoder_compute_budget=1,
        num_kv_blocks=8,
        scheduler_lookahead=1,
        gather_lookahead=1,
        num_speculative_tokens=1,
    ),
    (ScenarioRequest(3, (Feature(2, 1, "A"),)),),
)
ASYNC = "Asynchronous scheduling was not tried with this run"


def never_asked() -> LoopCounterexample:
    """A run that reads an item for which nobody asked the book."""
    return next(
        example
        for example in violations(AT_THE_END, NEVER_ENCODED)
        if example.finding.claim == "need-agrees"
    )


def passed_over(claim: str, mechanism: str) -> LoopCounterexample:
    """A run of 0.23.0, whose book has room for an item that is then passed over."""
    document = load(RECORD)
    assert isinstance(document, TraceDocument)
    finding = replace(document.findings[0], claim=claim, mechanism=mechanism)
    return LoopCounterexample(finding, document.trace, ("V2",))


def told(example: LoopCounterexample) -> Account:
    """What is told of a run of a target that is not at hand."""
    return account_of(example, Origin("a release", recorded=True))


def marked(account: Account) -> str:
    """The words at the contradiction in the picture."""
    row = account.timeline.rows[account.timeline.contradiction]
    assert isinstance(row, StepRow)
    assert row.mark is not None
    return row.mark.text


@pytest.mark.parametrize("is_run", [True, False])
def test_what_a_neighbour_tried_is_not_said_to_be_untried(is_run: bool) -> None:
    """The table above shows a run with a pass ahead, and the last section denies that it was."""
    example = never_asked()
    assert any(near.scenario.config.async_depth for near in variations(AT_THE_END, 1))
    real = reference_rerun(example, NEVER_ENCODED)

    def rerun(scenarios: Sequence[Scenario]) -> Sequence[bool | None]:
        return [
            None if scenario.config.async_depth and not is_run else real([scenario])[0]
            for scenario in scenarios
        ]

    account = account_of(example, Origin("a release"), rerun)
    assert account.neighbours
    assert (ASYNC in account.not_shown) is not is_run
    assert ASYNC in account_of(example, Origin("a release")).not_shown


def test_what_was_given_room_was_asked_for() -> None:
    """The title says that nobody asked the book, and the story that the book had room."""
    account = told(passed_over("need-agrees", "boundary feature never asked for"))
    assert account.headline == (
        "A[4,8) was given room and then passed over, and is read in the same pass"
    )
    assert marked(account) == "reads A, which was given room and then passed over"
    (sentence,) = (line for line in account.story if "passed over" in line.text)
    assert sentence.because == "the chunk [0,4) ends where A begins"
    assert not any("nobody asked" in text for text in (account.headline, marked(account)))
    inside = told(passed_over("drafter-resident-or-boundary", "feature never asked for"))
    assert inside.headline.endswith("it was given room and then passed over")


def test_what_nobody_asked_for_is_said_to_be_that() -> None:
    """An item that the book never heard of was passed over by nobody."""
    account = told(never_asked())
    assert "nobody asked for it" in account.headline
    assert marked(account) == "reads A, which nobody asked for"


def test_a_request_that_does_not_run_is_why_its_room_is_not_taken() -> None:
    """A sum that came out right is no reason for leaving an item out."""
    example = passed_over("need-agrees", "boundary feature never asked for")
    trace = example.trace
    steps = tuple(
        replace(step, scheduled=()) if isinstance(step, PassSeen) and step.index == 0 else step
        for step in trace.steps
    )
    changed = timeline(replace(trace, steps=steps), None)
    because = [
        reason.because
        for row in changed.rows
        if isinstance(row, StepRow) and row.pass_index == 0
        for reason in row.reasons
        if "passed over" in reason.text
    ]
    assert because == ["the request does not run"]


def test_no_limit_is_not_a_limit_of_nothing() -> None:
    """A threshold of 0 tokens reads as if no token could run."""
    scenario = replace(
        AT_THE_END,
        config=replace(AT_THE_END.config, long_prefill_token_threshold=1, block_alignment=1),
    )
    names = [near.what for near in variations(scenario, 1)]
    assert "no threshold on long prefills instead of 1" in names
    assert "no alignment of chunks instead of 1" in names
    assert not any("0 tokens instead" in name and "at most" in name for name in names)


def test_a_legend_explains_what_is_there() -> None:
    """A letter that is explained and does not occur is looked for in vain."""
    plain = replace(
        AT_THE_END,
        config=replace(
            AT_THE_END.config, scheduler_lookahead=0, gather_lookahead=0, num_speculative_tokens=0
        ),
    )
    assert run_legend(plain) == ("B is the token budget of a pass, C the rows of the encoder cache")
    assert "ks and kg how far" in run_legend(AT_THE_END)
    assert ", E those" not in run_legend(AT_THE_END)
    short = replace(AT_THE_END, config=replace(AT_THE_END.config, encoder_compute_budget=0))
    assert ", E those that the encoder computes" in run_legend(short)
    account = told(never_asked())
    for text in (run_markdown(account, Links()), run_page(account, Links())):
        assert run_legend(AT_THE_END) in text
        assert "E rows" not in text
        assert "E those" not in text


def test_numbers_of_reports_have_their_project() -> None:
    """A bare number of five digits is no name of anything."""
    assert named_text("52306, 52412: models") == "vLLM #52306, vLLM #52412: models"
    assert named_text("vllm-ascend 12345 of 2026") == "vllm-ascend #12345 of 2026"


def test_a_test_that_needs_this_project_says_so() -> None:
    """The command fails wherever this project is not installed."""
    (example, *_) = of_switch("item-split-at-start")
    text = reference_test(example.finding, example.trace, "test_it", runners=("V1",))
    assert "(from 0)" not in text
    account = account_of_switch("item-split-at-start", example.finding.claim)
    needs = "n this project's environment:"
    assert needs in run_markdown(account, Links())
    assert needs in run_page(account, Links()).replace("&#39;", "'")
    assert needs not in run_markdown(account, Links(test=None))


def test_only_files_that_are_there_are_said_to_be_written(tmp_path: Path) -> None:
    """A path is printed of a test that could not be made."""
    example = never_asked()
    other = replace(example, trace=replace(example.trace, target="a release"))
    for place, reported in (("with", example), ("without", other)):
        (written,) = write_run_reports(
            [reported], Origin("reference"), tmp_path / place, lambda example: None
        )
        assert all(path.is_file() for path in written.paths)
        assert {path.name for path in written.paths} == {
            path.name for path in written.paths[0].parent.iterdir()
        }
        assert any(path.name == "test_repro.py" for path in written.paths) is (place == "with")


def test_a_source_proof_names_every_claim_that_it_takes() -> None:
    """The list leaves out what only passes show, or offers what is then refused."""
    with pytest.raises(InputError, match="unknown claim 'itm-whole'; known claims: ") as raised:
        parts_of_claims(["itm-whole"])
    offered = str(raised.value).partition("known claims: ")[2].split(", ")
    assert {"item-whole", "no-stall", "need-agrees", "views-agree", "rows-exact"} <= set(offered)
    assert all(parts_of_claims([claim]) for claim in offered)
    with pytest.raises(InputError, match="no source proof is about claim 'fresh-tensor'"):
        parts_of_claims(["fresh-tensor"])


@pytest.mark.parametrize(("pages", "is_told"), [(2, True), (4, False)])
def test_findings_that_share_a_page_are_counted(
    pages: int, is_told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Four ids are printed, two folders are written, and nobody says where two of them went."""
    tell_pages(4, pages)
    assert capsys.readouterr().out.startswith("4 refuted questions on 2 pages") is is_told


@pytest.mark.parametrize(
    "words",
    [
        ["claims", "no-such-claim"],
        ["claims", "--json", "/proc/out.json"],
        ["prove", "--claim", "no-such-claim"],
        ["prove", "--group", "no-such-group"],
        ["prove", "--report", "out"],
        ["prove", "--source-of", "0.0.0"],
        ["prove", "--source-of", "0.24.0", "--group", "items"],
    ],
    ids=" ".join,
)
def test_wrong_input_takes_one_line(words: list[str]) -> None:
    """One command answers with its usage where another says what is wrong."""
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2, done.output
    (line,) = done.output.splitlines()
    assert line.startswith("Error: ")


def test_what_cannot_be_made_is_not_said_to_resist_writing(tmp_path: Path) -> None:
    """One who reads that a folder cannot be written looks for permissions of what is not there."""
    for path in (Path("/proc/out"), tmp_path / ("n" * 300)):
        with pytest.raises(InputError, match="cannot be created"):
            require_writable(path)
    with pytest.raises(InputError, match="cannot be written"):
        require_writable(Path("/proc"))
