"""The pages that are opened in a browser, written as the commands write them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from impl.targets.runs import ReferenceLoop
from proofs.drive.origin import Origin
from proofs.report.near.comparison import compare
from proofs.report.near.rerun import Rerun, reference_rerun
from proofs.report.pages.comparison import comparison_page
from proofs.report.pages.function_report import write_function_reports
from proofs.report.pages.index import INDEX
from proofs.report.pages.pass_report import write_pass_report
from proofs.report.pages.run_report import folder_name, write_run_reports
from proofs.run.record import record
from proofs.run.targets import faults_of
from proofs.search.runs.results import LoopCounterexample
from spec.claims.texts import FUNCTION_CLAIMS
from spec.functions.findings import Finding
from spec.functions.scheduling_cases import BookEntry, SchedulingCase
from spec.monitor.monitor import LoopMonitor
from spec.record.feature import Feature
from spec.record.scenario import Scenario
from spec.record.steps import Trace
from tests.report.test_report import VLLM, WIDE, made_up
from tests.report.test_report_page import DRIFT, MISS, STUCK, crowded
from tests.support.hostile_names import NAMES
from tests.support.report_runs import of_switch, violations
from tests.support.written_reports import write_all

_TARGET = "</title><b>\u202e`|{{x}} " + "x" * 10_000
_REPORT_MARK, _PICTURE_MARK = ".strip .mark", ".scroll svg .mark"

NAMES_OF_PAGES = (
    *("miss", "stuck", "drift", "index", "function", "function-index", "difference"),
    *("crowded", "hostile", "hostile-index", "hostile-function", "hostile-difference"),
    "hostile-pass",
)


@dataclass(frozen=True)
class Written:
    """A page.

    Attributes:
        mark: selects what goes wrong.
        on_first_screen: whether the mark has to be there.
        picture: selects the marks in pictures of runs; empty where there are none.
    """

    path: Path
    mark: str
    on_first_screen: bool = True
    picture: str = ""


def written_pages(folder: Path) -> dict[str, Written]:
    """Write all pages, by their names."""
    stuck = _example(*STUCK)
    whole = _last(crowded())
    # As if it showed in the last step, so that all of them are drawn.
    late = replace(whole.finding, claim="runners-agree", pass_index=10**6)
    named = _last(_hostile())
    hostile = replace(named, trace=replace(named.trace, target=_TARGET))

    three = (_example(*MISS), stuck, _example(*DRIFT))
    miss, stuck_page, drift, index = _reports(folder / "three", *three)
    crowd, _ = _reports(folder / "crowded", replace(whole, finding=late))
    hostile_page, hostile_index = _reports(folder / "hostile", hostile)

    plain = made_up("rows-exact", FUNCTION_CLAIMS["rows-exact"].witness, "V1")
    function, _ = _functions(folder / "function", plain)
    hard_function, functions = _functions(folder / "hard", made_up("rows-exact", WIDE, "V1"))
    return {
        "miss": miss,
        "stuck": stuck_page,
        "drift": drift,
        "index": index,
        "function": function,
        "function-index": functions,
        "difference": _difference(folder / "diff.html", stuck.trace, _run(stuck.trace.scenario)),
        "crowded": crowd,
        "hostile": hostile_page,
        "hostile-index": hostile_index,
        "hostile-function": hard_function,
        "hostile-difference": _difference(
            folder / "hostile.html", hostile.trace, _run(named.trace.scenario)
        ),
        "hostile-pass": _pass(folder / "pass"),
    }


def _example(switch: str, claim: str) -> LoopCounterexample:
    return next(example for example in of_switch(switch) if example.finding.claim == claim)


def _last(scenario: Scenario) -> LoopCounterexample:
    found = violations(scenario, ("no-boundary-tolerance", "boundary-never-encoded"))
    return max(
        found, key=lambda example: (example.finding.pass_index, example.finding.claim == MISS[1])
    )


def _hostile() -> Scenario:
    """A part of the crowded scenario, with a name from outside for each hash."""
    scenario = crowded()
    requests = [replace(request, max_tokens=3) for request in scenario.requests[:8]]
    given = dict.fromkeys(f.identifier for request in requests for f in request.features)
    names = dict(zip(given, reversed(NAMES), strict=False))
    assert len(names) == len(given)
    renamed = (
        replace(
            request,
            features=tuple(replace(f, identifier=names[f.identifier]) for f in request.features),
        )
        for request in requests
    )
    return replace(scenario, requests=tuple(renamed))


def _run(scenario: Scenario) -> Trace:
    monitor = LoopMonitor(scenario, "V1")
    return record(ReferenceLoop(), scenario, "V1", max_passes=60, monitor=monitor).trace


def _rerun(example: LoopCounterexample) -> Rerun | None:
    faults = faults_of(example.trace.target)
    return None if faults is None else reference_rerun(example, faults)


def _reports(folder: Path, *examples: LoopCounterexample) -> list[Written]:
    """The page of each, and the one over all of them."""
    origin = Origin(examples[0].trace.target, seed=0)
    write_all(write_run_reports(examples, origin, folder, _rerun), folder, origin)
    pages = [folder / folder_name(example) / "report.html" for example in examples]
    reports = [Written(page, _REPORT_MARK, picture=_PICTURE_MARK) for page in pages]
    return [*reports, _index(folder)]


def _index(folder: Path) -> Written:
    return Written(folder / INDEX, "tbody th a")


def _functions(folder: Path, finding: Finding) -> tuple[Written, Written]:
    write_all(write_function_reports([finding], folder, VLLM), folder, VLLM)
    (page,) = folder.glob("*/report.html")
    return Written(page, "dd.bad", on_first_screen=False), _index(folder)


def _pass(folder: Path) -> Written:
    """A finding on a pass that no run shows, with names from outside."""
    features = tuple(
        Feature(9 * n, 7, name, (True, False) * 3 + (True,)) for n, name in enumerate(NAMES)
    )
    entries = tuple(BookEntry(f.identifier, f.num_rows, "another") for f in features)
    case = SchedulingCase(features, 9 * len(NAMES), 3, 50, 9, 9_000, 2, entries=entries)
    found = made_up("no-stall", case, "scheduling alone")
    origin = Origin(_TARGET, release="0.33.0", digest="sha256:" + "0" * 64)
    why = f"the engine could not be driven: {_TARGET}"
    made = write_pass_report(
        found, "scheduling alone", ("everything-fits-alone",), why, origin, folder
    )
    return Written(made.paths[0], "dd.bad", on_first_screen=False)


def _difference(path: Path, first: Trace, second: Trace) -> Written:
    path.write_text(comparison_page(compare(first, second)), encoding="utf-8")
    return Written(path, ".parting th .bad", False, _PICTURE_MARK)
