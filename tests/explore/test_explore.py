"""The exhaustive search: that it sees everything in its scope, and says what it saw."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import combinations, pairwise, zip_longest
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from impl.faults.switches import FAULTS, fault
from impl.targets.runs import ReferenceLoop
from proofs.commands.explore import explore as explore_command
from proofs.explore import search
from proofs.explore.case import AXES, Case, rows
from proofs.explore.chunk import (
    CALLS_EVERY,
    ChunkResult,
    Found,
    Job,
    explore_chunk,
    merge,
    num_jobs,
)
from proofs.explore.graph import Graph, explore, find_cycle
from proofs.explore.lockstep import walk
from proofs.explore.pairs import covering_array
from proofs.explore.paths import covering_paths, scenario_of
from proofs.explore.related import first_outside
from proofs.explore.scope import cases, scope_named
from proofs.explore.search import ExploreSettings, confirm, run_exploration
from spec.errors import InputError
from spec.model.calls import CallLog
from spec.model.claims import CLAIMS, VIEWS_AGREE
from spec.model.layout import Layout
from spec.model.rules import FAULTY_RULES
from spec.model.run import ModelEvent, ModelPass, ModelUpdate, run_layout, run_model
from spec.model.seen import SeenSteps
from spec.record.document import loads
from spec.record.steps import Step
from spec.verdict import Verdict
from tests.recorders.record_explore import RECORD, counts_of, explored, fault_entry
from tests.support.results_files import read_results

RECORDED: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
SMALL = cases(scope_named("small"))


def _graph(case: Case, name: str | None = None) -> tuple[Layout, Graph]:
    rules = {} if name is None else {"rules": FAULTY_RULES[name]}
    layout = Layout(case.config, case.requests, **rules)
    return layout, explore(layout, case.choices)


def test_the_small_scope_is_as_recorded() -> None:
    """Wrong: something in the scope is no longer reached, or a claim is broken there."""
    assert explored("small", workers=1) == RECORDED["small"]
    assert set(RECORDED["small"]["claims"].values()) == {"HELD"}


def test_every_claim_holds_in_the_default_scope_as_recorded() -> None:
    """Wrong: a record of a scope in which a claim was broken or never put to the test."""
    assert RECORDED["claims"] == dict.fromkeys(CLAIMS, "HELD")


def test_the_scope_is_deeper_than_every_known_fault() -> None:
    """Wrong: a fault that needs more passes than the scope has would go unseen."""
    needed = [
        found["passes"]
        for entry in RECORDED["faults"].values()
        for found in entry["claims"].values()
    ]
    assert RECORDED["totals"]["depth"] > max(needed)
    assert RECORDED["small"]["totals"]["depth"] > max(needed)


@pytest.mark.parametrize("name", sorted(RECORDED["faults"]))
def test_the_record_of_a_switch_is_what_its_switch_says(name: str) -> None:
    """Wrong: search and exhaustive search name different claims for one fault."""
    switch = fault(name)
    claims = set(RECORDED["faults"][name]["claims"])
    assert set(switch.breaks_in_loop) <= claims
    assert claims <= {*switch.breaks_in_loop, *switch.may_also_break}


@pytest.mark.parametrize("name", sorted(RECORDED["faults"]))
def test_recorded_counterexamples_are_shown_by_the_reference(name: str) -> None:
    """Wrong: the model's counterexample is none, or the record's length is not its own."""
    for claim, entry in RECORDED["faults"][name]["claims"].items():
        scenario = loads(json.dumps(entry["scenario"])).scenario
        confirmed = confirm(Found(claim, entry["passes"], scenario, 1), name)
        assert confirmed.finding is not None
        assert confirmed.passes == entry["passes"]


@pytest.mark.parametrize("name", ["stale-eviction-notice"])
def test_a_switch_explored_again_is_as_recorded(name: str) -> None:
    """Wrong: a record that was not made by this program."""
    jobs = (Job("small", name, number, 0, 0) for number in range(num_jobs("small")))
    whole = merge(explore_chunk(job) for job in jobs)
    assert whole is not None
    assert json.loads(json.dumps(fault_entry(name, whole))) == RECORDED["faults"][name]


def test_the_record_is_of_the_switches_that_the_model_has() -> None:
    """Wrong: a switch without a record."""
    names = {f.name for f in FAULTS if f.name in FAULTY_RULES and f.breaks_in_loop}
    assert set(RECORDED["faults"]) == names


def test_the_reference_walks_every_edge() -> None:
    """Wrong: the reference does something that is not in the graph of the model."""
    for case in SMALL[::173]:
        layout, graph = _graph(case)
        walked = walk(case, layout, graph, ReferenceLoop(), "V1")
        assert walked.difference is None
        assert walked.edges == len(graph.edges) > 0


def test_what_is_compared_leaves_out_no_configuration() -> None:
    """Wrong: some settings under which the reference does not walk."""
    assert ExploreSettings().lockstep == 1
    default = cases(scope_named("default"))
    assert {case.row for case in default[::CALLS_EVERY]} == set(range(len(rows())))


def test_every_round_is_laid_against_the_relation() -> None:
    """Wrong: the proofs are about something else than what is explored."""
    assert ExploreSettings().relation == 1
    assert RECORDED["related"] == RECORDED["totals"]["edges"]
    assert RECORDED["small"]["related"] == RECORDED["small"]["totals"]["edges"]


def test_a_target_that_does_something_else_is_seen() -> None:
    """Wrong: the comparison compares nothing."""
    faulty = ReferenceLoop(["shifted-cut"])
    differences = []
    for case in SMALL[400::19]:
        layout, graph = _graph(case)
        walked = walk(case, layout, graph, faulty, "V1", record_calls=False)
        if walked.difference is not None:
            differences.append(walked.difference)
            break
    assert differences
    assert "the model has" in differences[0].what


def test_nothing_is_walked_after_an_error() -> None:
    """Wrong: with a fault that raises, the reference is blamed for what no run does."""
    name, raised = "finish-needs-references", 0
    for case in SMALL[37::370]:
        layout = Layout(case.config, case.requests, FAULTY_RULES[name])
        graph = explore(layout, case.choices)
        raised += bool(graph.errors)
        walked = walk(case, layout, graph, ReferenceLoop([name]), "V1", record_calls=False)
        assert walked.difference is None
        assert walked.edges == len(graph.edges)
    assert raised


OUTSIDE = {
    "notices-lost": "announces-what-left",
    "shifted-cut": "keeps-items-whole",
    "no-scheduler-shift": "looks-through-the-window",
    "freed-one-token-early": "lets-go-what-progress-passed",
    "finish-keeps-references": "state.others",
    "free-before-execution": "lets-go-in-an-update",
    "item-split-at-start": "keeps-items-whole",
    "cut-ends-late": "ends-before-what-was-refused",
    "stalled-head-ends-pass": "",
}
"""Switches, and the conjunct in which their first round outside the relation differs; an engine
that only runs too few tokens lies in it."""


@pytest.mark.parametrize("name", sorted(OUTSIDE))
def test_a_round_outside_the_relation_is_seen(name: str) -> None:
    """Wrong: the check against the relation checks nothing."""
    for case in SMALL[400::19]:
        layout, graph = _graph(case, name)
        outside = first_outside(case.scenario, layout, graph)
        if outside is not None:
            assert OUTSIDE[name]
            assert f"differs in {OUTSIDE[name]}" in outside.what
            assert outside.step >= 0
            return
    assert not OUTSIDE[name]


def test_a_round_outside_the_relation_is_told_and_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Wrong: an exploration that passes although the proofs are not about what it explored."""
    monkeypatch.setattr("proofs.explore.chunk.REFERENCE", FAULTY_RULES["notices-lost"])
    settings = ExploreSettings("small", lockstep=0, workers=1, jobs=(4,))
    report = run_exploration(settings)
    assert report.whole is not None
    assert report.whole.outside
    assert Verdict.ERROR in report.verdicts
    where = report.whole.outside[0]
    steps = list(run_model(where.scenario, FAULTY_RULES["notices-lost"]))
    assert isinstance(steps[where.step], ModelPass)
    assert "announces-what-left" in where.what


def test_two_ways_that_part_in_the_relation_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: a round looked at from one way says nothing of the others."""
    monkeypatch.setattr("spec.relation.runs.shown.REMEMBERED", {"passed"})
    parted = []
    for case in SMALL[400::19]:
        layout, graph = _graph(case)
        outside = first_outside(case.scenario, layout, graph)
        parted += [] if outside is None else [outside.what]
    assert parted
    assert all("two ways to one state" in what for what in parted)


def test_steps_of_the_model_are_told_as_the_reference_shows_them() -> None:
    """Wrong: what is laid against the relation is not what the graph or the reference does."""
    for case in SMALL[400::311]:
        layout = Layout(case.config, case.requests)
        seen = SeenSteps(layout)
        model = [seen.step(step) for step in run_layout(case.scenario, layout, CallLog(layout))]
        reference = list(ReferenceLoop().run(case.scenario, "V1"))
        assert len(model) == len(reference)
        for mine, theirs in zip(model, reference, strict=True):
            assert _relevant(mine) == _relevant(theirs)


def _relevant(step: Step) -> dict[str, Any]:
    """What the relation looks at, without the numbers of encodings and what ended requests had."""
    shown = asdict(step)
    shown["state"]["book"]["references"] = {
        name: sorted(holders) for name, holders in shown["state"]["book"]["references"]
    }
    shown["state"]["requests"] = [
        request if request["status"] != "finished" else (request["request"], "finished")
        for request in shown["state"]["requests"]
    ]
    worker = shown.get("worker")
    if worker is not None:
        shown["worker"] = {
            "received": worker["received"],
            "encoded": [(output["request"], output["feature"]) for output in worker["encoded"]],
            "contents": {name for name, _ in worker["contents"]},
        }
    return shown


def test_paths_cover_every_edge_and_begin_at_the_beginning() -> None:
    """Wrong: some rounds are never walked by the reference."""
    for case in SMALL[::311]:
        _, graph = _graph(case)
        paths = covering_paths(graph)
        assert {edge for path in paths for edge in path} == set(range(len(graph.edges)))
        for path in paths:
            assert graph.edges[path[0]][0] == 0
            assert all(
                graph.edges[first][2] == graph.edges[second][0] for first, second in pairwise(path)
            )


def test_the_graph_has_what_scenarios_do() -> None:
    """Wrong: the graph leaves out a run that its choices allow."""
    case = next(
        c
        for c in SMALL
        if c.config.async_depth and len(c.requests) == 2 and c.config.num_speculative_tokens
    )
    _, graph = _graph(case)
    states = {state for state, _ in graph.nodes}
    for arrival in range(4):
        later = replace(case.requests[1], arrival=arrival, accepted_drafts=(1, 0, 2, 1))
        steps = list(run_model(replace(case.scenario, requests=(case.requests[0], later))))
        ends = {
            step.state
            for step, following in zip_longest(steps, steps[1:])
            if not isinstance(step, ModelEvent) and not isinstance(following, ModelUpdate)
        }
        assert len(ends) > 2
        assert ends <= states


def test_a_path_becomes_the_scenario_that_takes_it() -> None:
    """Wrong: counterexamples of the model are told as other runs."""
    case = next(c for c in SMALL if c.choices.disturbance == "failed load")
    layout, graph = _graph(case)
    number = next(n for n, edge in enumerate(graph.edges) if edge[1].load is not None)
    scenario = scenario_of(case, layout, graph.path(number))
    scenario.validate()
    assert sum(len(request.failed_loads) for request in scenario.requests) == 1


@given(
    st.dictionaries(st.sampled_from("abcde"), st.integers(1, 4).map(range), min_size=2, max_size=5)
)
def test_every_two_values_meet_in_a_row(sizes: dict[str, range]) -> None:
    """Wrong: two settings of the configuration never meet."""
    axes = {axis: tuple(str(value) for value in values) for axis, values in sizes.items()}
    _require_pairs(axes, covering_array(axes))


def _require_pairs(axes: dict[str, tuple[str, ...]], table: Sequence[dict[str, str]]) -> None:
    for left, right in combinations(axes, 2):
        met = {(row[left], row[right]) for row in table}
        assert met == {(a, b) for a in axes[left] for b in axes[right]}


def test_the_configurations_bring_every_two_settings_together() -> None:
    """Wrong: the scope claims pairs that it has not."""
    _require_pairs(AXES, rows())


@pytest.mark.parametrize(
    ("edges", "has_cycle"),
    [
        ([(0, 1, 0), (1, 2, 1), (0, 2, 2)], False),
        ([(0, 1, 0), (1, 2, 1), (2, 1, 2)], True),
        ([(0, 0, 0)], True),
        ([(3, 2, 0), (2, 1, 1), (0, 3, 2), (1, 0, 3)], True),
        ([], False),
    ],
)
def test_circles_are_found(edges: list[tuple[int, int, int]], has_cycle: bool) -> None:
    """Wrong: a run that turns in a circle counts as progress."""
    assert (find_cycle(edges) is not None) is has_cycle


def test_the_search_goes_on_behind_a_violation() -> None:
    """Wrong: liveness read off a search that stopped where something else broke."""
    graphs = [_graph(case, "notices-lost")[1] for case in SMALL[400::19]]
    broken = [graph for graph in graphs if VIEWS_AGREE in graph.broken]
    behind = [graph.edges[graph.broken[VIEWS_AGREE]][2] for graph in broken]
    assert any(
        source == node
        for graph, node in zip(broken, behind, strict=True)
        for source, _, _ in graph.edges
    )


def test_jobs_that_are_done_are_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong: an interrupted night begins anew, or other results pass for its own."""
    settings = ExploreSettings("small", lockstep=0, workers=1, resume=tmp_path, jobs=(0, 1))
    answers = iter((False, True))
    first = run_exploration(settings, interrupted=lambda: next(answers))
    assert first.jobs_done == 1
    assert first.interrupted
    assert len(list(tmp_path.iterdir())) == 1
    whole = run_exploration(settings)
    assert whole.jobs_done == 2
    assert not whole.interrupted

    def never(job: Job) -> ChunkResult:
        raise AssertionError(job)

    monkeypatch.setattr(search, "explore_chunk", never)
    again = run_exploration(settings)
    assert again.whole == whole.whole
    with pytest.raises(InputError, match="another folder"):
        run_exploration(replace(settings, fault="shifted-cut"))
    # Another version of the program would have found something else, and begins anew.
    monkeypatch.setattr(search, "explore_chunk", explore_chunk)
    monkeypatch.setattr(search, "code_digest", lambda module: f"another {module}")
    said: list[str] = []
    first_again = iter((False, True))
    anew = run_exploration(settings, interrupted=lambda: next(first_again), say=said.append)
    assert anew.jobs_done == 1
    assert len(said) == 1
    assert "2 jobs were finished by another version" in said[0]
    assert "another proofs.explore.chunk" in (tmp_path / "job-00000.json").read_text()
    said.clear()
    assert run_exploration(settings, say=said.append).jobs_done == 2
    assert "1 jobs were finished by another version" in said[0]
    next(iter(tmp_path.iterdir())).write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match="not a finished job"):
        run_exploration(settings)


def _run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(explore_command, arguments)
    return result.exit_code, result.output


def test_the_command_says_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: a violation that exits with 0, or a counterexample that cannot be replayed."""
    monkeypatch.setattr("proofs.explore.search.num_jobs", lambda scope: 6)
    report, folder = tmp_path / "report.json", tmp_path / "found"
    code, output = _run(
        "--scope", "small", "--fault", "deferred-free-margin", "--workers", "1", "--lockstep", "50",
        "--json", str(report), "--report", str(folder), "--claims", "no-stall",
    )  # fmt: skip
    assert code == 1
    assert "REFUTED no-stall" in output
    assert "agreed in every step" in output
    data = read_results(report, "explore")
    (checked,) = data["targets"]
    assert [outcome["verdict"] for outcome in checked["outcomes"]] == ["REFUTED"]
    assert counts_of(data)["totals"]["cases"] == 600
    (file,) = folder.glob("*/scenario.json")
    document = loads(file.read_text(encoding="utf-8"))
    assert document.findings[0].claim == "no-stall"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--scope", "huge"), "known: default"),
        (("--fault", "nothing"), "shifted-cut"),
        (("--fault", "rows-by-position"), "the model has no fault"),
        (("--claims", "rows-exact"), "no-stall"),
        (("--claims", ","), "empty"),
    ],
)
def test_wrong_input_is_refused(arguments: tuple[str, ...], word: str) -> None:
    """Wrong: a misspelt name explores something else, or nothing."""
    code, output = _run(*arguments)
    assert code == 2
    assert word in output


def test_a_target_that_parts_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: a model that is not the reference's passes."""
    monkeypatch.setattr("proofs.explore.search.num_jobs", lambda scope: 6)
    monkeypatch.setattr("proofs.explore.chunk._reference", lambda _: ReferenceLoop(["shifted-cut"]))
    code, output = _run("--scope", "small", "--workers", "1", "--lockstep", "19")
    assert code == 5
    assert "the target and the model part" in output
