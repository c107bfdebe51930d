"""Reports on what the proofs of a source refuted: each finding on passes is a run of the engine.

The reference stands in the place of a vLLM, but for the last tests.
"""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from impl.targets.runs import ReferenceLoop
from impl.vllm.launch.source import Source, cache_folder, unpacked
from proofs.commands.main import main
from proofs.commands.prove import ALL_SOURCE_PARTS, parts_to_prove
from proofs.describe.shape import shape
from proofs.dossiers import source as source_reports
from proofs.dossiers.source import report_source
from proofs.drive import source_run
from proofs.drive.drive import Wanted, shown_on
from proofs.drive.from_case import runs_like
from proofs.drive.origin import Origin
from proofs.drive.replay import judge_recorded
from proofs.report.pages.pass_report import write_pass_report
from proofs.report.pages.reproduce import Links
from proofs.run.record import record
from proofs.search.runs.results import LoopCounterexample
from proofs.source.check import SourceReport, SourceResult
from proofs.source.code.recorders import OVERRIDES
from proofs.source.code.release import ReleaseSource
from proofs.source.jobs import Scope, jobs_by_part
from proofs.symbolic.exploration import Counts
from proofs.symbolic.integers import NotModelled
from spec.errors import InputError
from spec.functions.cases import AnyCase, WindowCase
from spec.functions.findings import Finding, finding
from spec.functions.scheduling_cases import BookEntry, Holder, SchedulingCase
from spec.monitor.monitor import LoopMonitor
from spec.record.config import EngineConfig
from spec.record.document import dumps_trace, load, loads
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest
from spec.record.steps import PassSeen, Step
from spec.verdict import Verdict
from tests.report.test_report_markdown import require_harmless
from tests.support.fake_release import write_release
from tests.support.hostile_names import NAMES
from tests.support.html_pages import parsed, text_of
from tests.support.reference_as_vllm import replace_all, write_folder

FAULT = "whole-item-cut-short"
_A, _B = Feature(1, 2, "A"), Feature(4, 2, "B")
STALL = SchedulingCase((_A,), 3, 0, 2, 2, 2, 1, whole_items=True)
"""The cut before a whole item comes a token early, so that nothing is left."""

RUN = Scenario(
    EngineConfig(2, 2, 2, 5, 1, 1, 1, 1, 1, whole_items=True), (ScenarioRequest(3, (_A,)),)
)
"""The same as a run from its start."""

HELD = SchedulingCase((Feature(1, 1, "A"),), 2, 0, 1, 1, 1, 1)
"""A case in which the engine does nothing wrong."""


# Scenarios for cases


def before_the_last(scenario: Scenario) -> tuple[Step | None, PassSeen]:
    """Of the reference's run: the step before the last request first runs, and that pass."""
    last = len(scenario.requests) - 1
    previous: Step | None = None
    for step in record(ReferenceLoop(), scenario, "V1").trace.steps:
        if isinstance(step, PassSeen) and any(
            scheduled_request.request == last for scheduled_request in step.scheduled
        ):
            return previous, step
        previous = step
    raise AssertionError("the request never ran")


@pytest.mark.parametrize(
    "entries",
    [
        (),
        (BookEntry("A", 2),),
        (BookEntry("A", 2, "another"),),
        (BookEntry("old", 1), BookEntry("A", 2), BookEntry("young", 1)),
        (BookEntry("old", 1), BookEntry("held", 2, "another")),
        (BookEntry("held", 1, "another"), BookEntry("A", 2, "another")),
    ],
    ids=str,
)
@pytest.mark.parametrize("computed", [0, 1])
def test_the_engine_comes_to_the_case(entries: tuple[BookEntry, ...], computed: int) -> None:
    """Wrong: a run that shows another case than the one that the proof is about."""
    case = SchedulingCase((_A, _B), 8, computed, 3, 4, 8, 1, entries=entries)
    case.validate()
    closest = runs_like(case)[0]
    before, first = before_the_last(closest.scenario)
    held = {} if before is None else dict(before.state.book.references)
    assert set(held) == {entry.identifier for entry in entries}
    kinds: dict[str, Holder] = {n: "another" if who else "nobody" for n, who in held.items()}
    assert kinds == {entry.identifier: entry.holder for entry in entries}
    unreferenced = [entry.identifier for entry in entries if entry.holder == "nobody"]
    assert [name for name in held if not held[name]] == unreferenced  # Oldest first.
    (own,) = (
        scheduled
        for scheduled in first.scheduled
        if scheduled.request == len(closest.scenario.requests) - 1
    )
    assert own.num_computed_tokens == computed
    assert own.num_scheduled_tokens == case.token_budget


def test_what_is_not_the_case_itself_is_said() -> None:
    """Wrong: a reader who looks for the proof's numbers in the run, and finds others."""
    assert runs_like(STALL)[0].differs == ()
    tight = replace(HELD, encoder_budget=0)
    (closest, *rest) = runs_like(tight)
    assert any("threshold" in text for text in closest.differs)
    assert any("each item has to be encoded once" in text for text in closest.differs)
    assert any("generates beside it" in text for likeness in rest for text in likeness.differs)
    hit = replace(STALL, num_computed_tokens=1)
    assert "a prefix that is found" in runs_like(hit)[0].differs[0]


def test_no_scenario_is_made_up() -> None:
    """Wrong: a run for a case that depends on how the request came there."""
    held = replace(STALL, entries=(BookEntry("A", 2, "itself"),))
    assert runs_like(held) == ()
    for likeness in runs_like(STALL):
        likeness.scenario.validate()


def test_a_run_is_made_small_and_stays_the_same_violation() -> None:
    """Wrong: a page that is larger than need be, or about another fault than was asked for."""
    text = ScenarioRequest(4, max_tokens=3)
    larger = replace(
        RUN,
        config=replace(RUN.config, num_kv_blocks=60, max_num_seqs=4),
        requests=(*RUN.requests, text),
    )
    target = ReferenceLoop([FAULT])
    plain = shown_on(target, Wanted("no-stall", None, (larger,)))
    small = shown_on(target, Wanted("no-stall", None, (larger,), shrinks=True))
    assert plain.example is not None
    assert small.example is not None
    assert plain.example.trace.scenario == larger
    assert len(small.example.trace.scenario.requests) == 1
    assert small.example.finding.mechanism == plain.example.finding.mechanism
    assert small.example.finding.shape == shape(small.example.trace.scenario)
    assert small.example.runners == ("V1", "V2")
    clean = shown_on(ReferenceLoop(), Wanted("no-stall", None, (larger, RUN)))
    assert (clean.example, clean.num_run) == (None, 2)


def test_stopping_early_leaves_a_run_as_small_as_it_is() -> None:
    """Wrong: Ctrl-C that waits for three hundred runs, or a run that it takes away."""
    asked = iter([False])
    larger = replace(RUN, requests=(*RUN.requests, ScenarioRequest(2)))
    wanted = Wanted("no-stall", None, (larger,), shrinks=True)
    shown = shown_on(ReferenceLoop([FAULT]), wanted, should_stop=lambda: next(asked, True))
    assert shown.example is not None
    assert shown.example.trace.scenario == larger
    none = shown_on(ReferenceLoop([FAULT]), wanted, should_stop=lambda: True)
    assert (none.example, none.num_run, none.is_done) == (None, 0, False)


def test_another_mechanism_counts_only_without_signs() -> None:
    """Wrong: what an engine does in another way confirms what was said of it."""
    target = ReferenceLoop([FAULT])
    wanted = Wanted("no-stall", None, (RUN,))
    seen = shown_on(target, wanted).seen
    (mechanism,) = (how for claim, how in seen if claim == "no-stall")
    assert shown_on(target, replace(wanted, signs=mechanism)).example is not None
    shown = shown_on(target, replace(wanted, signs="for want of anything else"))
    assert (shown.example, shown.seen) == (None, seen)


# Reports


def result(
    claim: str, part: str, case: AnyCase, mechanism: str = "made up", name: str = "vllm"
) -> SourceResult:
    """A refuted claim."""
    found = finding(
        claim, case, observed="o", expected="e", target=f"{name} {part}", mechanism=mechanism
    )
    sat = ("sat", "sat")
    taken = ("hash-is-content", "everything-fits-alone")
    done = (claim, part, Verdict.REFUTED, *sat, taken, 1, Counts(), 0, 0.0, "", found)
    return SourceResult(*done)  # type: ignore[arg-type]


def report_of(source: Source, *results: SourceResult) -> SourceReport:
    """A report with these results, each on the source."""
    named: list[SourceResult] = []
    for result in results:
        assert result.finding is not None
        target = f"{source.name} {result.part}"
        named.append(replace(result, finding=replace(result.finding, target=target)))
    return SourceReport(source.name, 1, 2, tuple(named))


def checkout(folder: Path, *faults: str) -> Source:
    """The reference with faults, as a vLLM in a folder."""
    write_folder(folder, *faults)
    package = folder / "vllm"
    return Source(f"vllm at {folder}", folder, package, None, "tree:0")


RESULTS = (
    result("window-exact", "window", WindowCase((_A,), 0, 2)),
    result("no-stall", "scheduling alone whole", STALL, "nothing is left before a whole item"),
    result("no-stall", "runs drafted whole", RUN, "a waiting request gets no tokens"),
    result("need-agrees", "scheduling", HELD, "an item that is read was not asked for"),
)


@pytest.fixture
def reference_as_vllm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Jobs run in this process, on the reference."""
    replace_all(monkeypatch.setattr)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def pages(folder: Path) -> dict[str, str]:
    """The text of each page, by the name of its folder."""
    return {p.parent.name: text_of(p.read_text("utf-8")) for p in folder.glob("*/report.html")}


@pytest.mark.usefixtures("reference_as_vllm")
def test_each_refuted_claim_has_a_page_and_passes_have_a_run(tmp_path: Path) -> None:
    """Wrong: a finding on passes that no maintainer can run, or one that is on no page."""
    source, folder = checkout(tmp_path / "made", FAULT), tmp_path / "out"
    sections = report_source(report_of(source, *RESULTS), source, folder)
    texts = pages(folder)
    assert len(texts) == len(sections) == 3
    index = (folder / "index.html").read_text("utf-8")
    assert all(f"{name}/report.html" in index for name in texts)
    (stuck,) = (name for name in texts if name.startswith("no-stall"))
    assert {path.name for path in (folder / stuck).iterdir()} == set(Links().all)
    # Both findings lead to one run; the page names both parts of the proof.
    for result in RESULTS[1:3]:
        assert f"refutes the claim ({result.part})" in texts[stuck]
    assert f"--target vllm --source {source.root}" in texts[stuck]
    test = (folder / stuck / "test_repro.py").read_text("utf-8")
    assert "from vllm" in test
    assert load(folder / stuck / "scenario.json").scenario.requests == RUN.requests


@pytest.mark.usefixtures("reference_as_vllm")
def test_a_run_that_goes_wrong_in_another_way_says_so(tmp_path: Path) -> None:
    """Wrong: a page says that the engine does what the proof saw, and it does something else."""
    source, folder = checkout(tmp_path / "made", FAULT), tmp_path / "out"
    report_source(report_of(source, *RESULTS[1:3]), source, folder)
    (text,) = pages(folder).values()
    assert "in another way than the proof's run: on the engine, " in text
    assert "in the proof, a waiting request gets no tokens" in text
    assert "told in words of their own, and may be two faults" in text
    shown = shown_on(ReferenceLoop([FAULT]), Wanted("no-stall", None, (RUN,))).example
    assert shown is not None
    same = result("no-stall", "runs drafted whole", RUN, shown.finding.mechanism)
    report_source(report_of(source, same), source, tmp_path / "same")
    (text,) = pages(tmp_path / "same").values()
    assert "in another way" not in text


@pytest.mark.usefixtures("reference_as_vllm")
def test_what_was_done_before_an_interrupt_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong: Ctrl-C while the engine runs takes the pages of findings that need no engine."""
    stops = nullcontext(lambda: True)
    monkeypatch.setattr("proofs.dossiers.source.interrupts", lambda: stops)
    source, folder = checkout(tmp_path / "made", FAULT), tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        report_source(report_of(source, *RESULTS), source, folder)
    (name,) = pages(folder)
    assert name.startswith("window-exact")
    assert f"{name}/report.html" in (folder / "index.html").read_text("utf-8")


@pytest.mark.usefixtures("reference_as_vllm")
def test_a_case_that_no_run_shows_says_so(tmp_path: Path) -> None:
    """Wrong: a claim that is refuted and left out, or a run that shows nothing."""
    source, folder = checkout(tmp_path / "made"), tmp_path / "out"
    own = replace(STALL, entries=(BookEntry("A", 2, "itself"),))
    results = (RESULTS[3], result("no-stall", "scheduling alone", own))
    report_source(report_of(source, *results), source, folder)
    texts = pages(folder)
    (held,) = (text for name, text in texts.items() if name.startswith("need-agrees"))
    (unknown,) = (text for name, text in texts.items() if name.startswith("no-stall"))
    assert "2 scenarios were run on the engine, and the claim held" in held
    assert "No legal scenario is known" in unknown
    assert f"residency prove --source-of {source.root} --claim need-agrees" in held
    assert "tokens to be had [0,1)" in held
    assert "Taken for granted: one whole request with its drafts fits" in held
    for path in folder.glob("*/finding.json"):
        assert json.loads(path.read_text())["case"]["kind"] == "scheduling"
    markdown = (folder / next(iter(texts)) / "report.md").read_text()
    assert "No run of the engine is shown" in markdown


@pytest.mark.usefixtures("reference_as_vllm")
def test_a_run_of_the_source_alone_is_not_taken_for_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong: a page that says that the engine does what only the proof has seen."""

    def own_run(source: Source, found: Finding) -> LoopCounterexample:
        monitor = LoopMonitor(RUN, "V1")
        recording = record(ReferenceLoop([FAULT]), RUN, "V1", monitor=monitor)
        trace = replace(recording.trace, target=f"the source of {source.name}, on plain integers")
        return LoopCounterexample(recording.findings[0], trace, ("V1",))

    monkeypatch.setattr(source_reports, "source_run", own_run)
    source, folder = checkout(tmp_path / "made"), tmp_path / "out"
    report_source(report_of(source, RESULTS[2]), source, folder)
    ((name, text),) = pages(folder).items()
    assert "called by the source proof" in text
    assert f"That the engine of {source.name} does the same: the scenario closest" in text
    assert "The real scheduler" not in text
    assert not (folder / name / "test_repro.py").exists()
    assert "--target recorded" in text

    def unknown(source: Source, found: Finding) -> None:
        raise NotModelled("a name")

    monkeypatch.setattr(source_reports, "source_run", unknown)
    with pytest.raises(AssertionError):
        report_source(report_of(source, RESULTS[2]), source, tmp_path / "other")


@pytest.mark.usefixtures("reference_as_vllm")
def test_an_engine_that_cannot_be_driven_is_no_reason_to_be_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong: no page for want of a package that the engine needs and the proof does not."""

    def missing(vllm: object) -> None:
        raise InputError("install transformers first")

    monkeypatch.setattr("proofs.drive.drive.make_target", missing)
    source, folder = checkout(tmp_path / "made", FAULT), tmp_path / "out"
    report_source(report_of(source, RESULTS[1]), source, folder)
    (text,) = pages(folder).values()
    assert "The engine could not be driven: install transformers first" in text


@pytest.mark.parametrize("index", range(0, len(NAMES) - 1, 4))
def test_no_name_breaks_the_page_of_a_pass(tmp_path: Path, index: int) -> None:
    """Wrong: an identifier of a user's that is markup of a page or a comment."""
    first, second = NAMES[index : index + 2]
    case = SchedulingCase(
        (Feature(0, 2, first), Feature(2, 2, second)),
        4,
        0,
        2,
        4,
        8,
        1,
        entries=(BookEntry(first, 2),),
    )
    found = result("no-stall", "scheduling", case).finding
    assert found is not None
    found = replace(found, observed=f"{first} {second}", expected=second, mechanism=first)
    origin = Origin(f"vllm at /{first}", source=Path("/x"), digest=second)
    made = write_pass_report(found, "scheduling", (), f"told {first}", origin, tmp_path)
    require_harmless(made.paths[1].read_text("utf-8"), "heading_open")
    page = made.paths[0].read_text("utf-8")
    parsed(page)
    assert "<script" not in page
    assert not [c for c in page if not c.isprintable() and c not in "\n\u2068\u2069"]


# The commands


def test_both_commands_on_a_source_write_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong: one of two ways to ask for a proof forgets the report, or tells less."""
    monkeypatch.setattr("proofs.source.check.os.cpu_count", lambda: 1)
    release = tmp_path / "release"
    write_release(release, utils=("bisect.bisect_right(ends", "bisect.bisect_left(ends"))
    prove = f"prove --source-of {release} --claim window-exact"
    check = f"check --target vllm --source {release} --level source --claims window-exact"
    texts = []
    for number, line in enumerate((prove, check)):
        folder = tmp_path / str(number)
        done = CliRunner().invoke(main, [*line.split(), "--report", str(folder)])
        assert done.exit_code == 1, done.output
        # How long a proof took is no result.
        texts.append(
            {
                p.relative_to(folder): re.sub(r' time="[^"]*"', "", p.read_text())
                for p in folder.rglob("*.*")
            }
        )
    assert texts[0] == texts[1]
    assert {path.name for path in texts[0]} >= {"report.html", "index.html", "junit.xml"}
    assert "results.sarif" in {path.name for path in texts[0]}
    refused = CliRunner().invoke(main, ["prove", "--report", str(tmp_path / "rules")])
    assert refused.exit_code == 2
    assert "add --source-of" in refused.output


def test_a_chosen_runner_is_the_only_one_under_proof(tmp_path: Path) -> None:
    """Wrong: --runner that changes nothing about what is proved, or leaves out all else."""
    release = ReleaseSource(write_release(tmp_path), OVERRIDES)
    assert set(jobs_by_part(release, "vllm", Scope(1, 2))) <= set(ALL_SOURCE_PARTS)
    assert parts_to_prove(None, "both") is None
    every = parts_to_prove(None, "V2")
    assert every is not None
    assert set(ALL_SOURCE_PARTS) - set(every) == {"V1"}
    assert parts_to_prove(["mask-exact"], "V1") == ("V1",)
    assert "V2" in (parts_to_prove(["mask-exact"], "both") or ())


# Real releases

NEWEST = "0.33.0"


def newest() -> Source:
    """The release, or a skip."""
    source = unpacked(cache_folder(), NEWEST)
    if find_spec("transformers") is None or source is None:
        pytest.skip(f"vLLM {NEWEST} IS NOT HERE, so its engine was not driven; run `make vllm`")
    return source


@pytest.mark.vllm
def test_findings_of_a_release_are_runs_of_its_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong: what the proof refutes is never seen on the release itself."""
    # Scenarios that lie near are run for every report, and take as long again.
    monkeypatch.setattr("proofs.report.near.rerun.variations", lambda *_: ())
    source = newest()
    report_source(report_of(source, RESULTS[1]), source, tmp_path)
    ((name, text),) = pages(tmp_path).items()
    assert "The real scheduler, its encoder cache manager" in text
    assert f"--target vllm --release {NEWEST}" in text
    assert {path.name for path in (tmp_path / name).iterdir()} == set(Links().all)


@pytest.mark.vllm
def test_the_source_alone_runs_the_scenario_too() -> None:
    """Wrong: a page without a picture although the proof itself has the run."""
    source = newest()
    waits = "a waiting request gets no tokens and nothing is asked for it"
    found = result("no-stall", "runs drafted whole", RUN, waits).finding
    assert found is not None
    example = source_run.source_run(source, found)
    assert example is not None
    assert example.finding.claim == "no-stall"
    assert example.trace.target == f"the source of vllm {NEWEST}, on plain integers"
    # What is written can be judged again, as any run that was recorded elsewhere.
    document = loads(dumps_trace(example.trace, [example.finding]), "trace")
    assert example.finding.claim in {finding.claim for finding in judge_recorded(document).findings}
    assert source_run.source_run(source, replace(found, claim="released")) is None
