"""Whole runs of a release's scheduler under proof: what they show, and that they can show it.

What is recorded of whole reports is proved by `.ci/run`; here are the shapes that show it quickly.
"""

from __future__ import annotations

import ast
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from impl.vllm.launch.source import cache_folder, unpacked
from proofs.commands.prove import parts_of_claims
from proofs.describe.cases import describe_case
from proofs.source.ask.piece import Piece
from proofs.source.code import run_passes as run_code
from proofs.source.code.book_calls import BOOK_MODULE, SCHEDULER_MODULE
from proofs.source.code.initial import InitialValues
from proofs.source.code.recorders import OVERRIDES
from proofs.source.code.release import ReleaseSource
from proofs.source.code.run_setup import RunCode
from proofs.source.passes import run_scenario
from proofs.source.passes.run_claims import RULES
from proofs.source.passes.run_scenario import RunShape
from proofs.source.passes.runs import claims_of, judged, run_pieces, run_plain, shapes_of_runs
from proofs.source.scenario_files import replay_commands, write_scenarios
from spec.errors import InputError
from spec.functions.case_files import finding_to_json
from spec.record.config import EngineConfig
from spec.record.document import dumps_scenario, load, loads
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest
from spec.verdict import Verdict
from tests.recorders.record_releases import recorded
from tests.support.real_releases import pieces_on, real_release

ALONE = RunShape("A")
DRAFTED = RunShape("A", 1)
NEIGHBOURS = RunShape("AB", 1)
MASKED = RunShape("A", 1, dense=False)
WHOLE = RunShape("A", 1, whole_items=True)
REPEATED = RunShape("AA")


def _changed(name: str, module: str, *changes: tuple[str, str]) -> ReleaseSource:
    """The release with some text of a module replaced where it first stands."""
    release = real_release(name)
    text = ast.unparse(release.tree(module))
    for old, new in changes:
        assert old in text, f"{name} has no longer: {old}"
        text = text.replace(old, new)
    return release.with_change(module, ast.parse(text))


def _refuted(pieces: list[Piece]) -> dict[str, Piece]:
    assert {p.verdict for p in pieces} <= {Verdict.PROVED, Verdict.REFUTED}, [
        (p.claim, p.verdict, p.detail) for p in pieces
    ]
    return {p.claim: p for p in pieces if p.verdict is Verdict.REFUTED}


@cache
def _as_released(shape: RunShape) -> dict[str, Piece]:
    """What the shape refutes of 0.33.0 itself."""
    return _refuted(pieces_on(real_release("0.33.0"), "0.33.0", shape))


# What runs show of releases

needs_releases = pytest.mark.vllm


@needs_releases
@pytest.mark.parametrize(
    ("shape", "claim", "bad", "good"),
    [
        # 47738: the cut before B comes a token early, so that A is never finished.
        (NEIGHBOURS, "no-stall", "0.32.0", "0.33.0"),
        # 51603: a boundary feature is not encoded ahead.
        (DRAFTED, "need-agrees", "0.24.0", "0.33.0"),
        # The same with a mask that starts F: the feature starts in the range.
        (MASKED, "drafter-resident-or-boundary", "0.24.0", "0.33.0"),
        # Both occurrences in one pass: the second takes no reference.
        (REPEATED, "held-until-last-use", "0.24.0", "0.33.0"),
        # A threshold splits an item at the chunk's start.
        (RunShape("A", whole_items=True, capped=True), "item-whole", "0.24.0", "0.33.0"),
        # A whole item that is longer than the budget less the shift is never run.
        (WHOLE, "no-stall", "0.33.0", None),
        # The roll-back before the second item ends inside the first.
        (RunShape("AB", 1, whole_items=True), "item-whole", "0.33.0", None),
        # What is kept free before the prefill's end takes the last token.
        (RunShape("AB", 2), "no-stall", "0.33.0", None),
    ],
)
def test_known_faults_show_in_runs(shape: RunShape, claim: str, bad: str, good: str | None) -> None:
    """Wrong: a fault that a person can replay, and a bounded model check of the source misses."""
    found = _refuted(pieces_on(real_release(bad), bad, shape))
    assert claim in found
    finding = found[claim].finding
    assert finding is not None
    assert finding.target == f"{bad} {shape.part}"
    assert isinstance(finding.case, Scenario)
    finding.case.validate()
    if good is not None:
        assert claim not in _refuted(pieces_on(real_release(good), good, shape))


@needs_releases
def test_three_passes_show_what_two_do_not() -> None:
    """Wrong: a third pass that adds nothing to a claim about what comes back."""
    forgets = ("request.num_computed_tokens -= num_rejected", "request.num_computed_tokens = 4")
    release = _changed("0.33.0", SCHEDULER_MODULE, forgets)
    few, many = DRAFTED, RunShape("A", 1, num_passes=3)
    found = _refuted(run_pieces(release, "mutant", few)).keys()
    assert found < _refuted(run_pieces(release, "mutant", many)).keys()


_QUICK = (DRAFTED, MASKED, WHOLE, REPEATED)


@needs_releases
@pytest.mark.parametrize("name", ["0.23.0", "0.24.0", "0.33.0"])
def test_only_recorded_claims_are_refuted(name: str) -> None:
    """Anything more is news; what `.ci/run` proves of all shapes is compared with the record."""
    expected = {(claim, part) for claim, part in recorded()[name]["source_refuted"]}
    for shape in _QUICK:
        pieces = pieces_on(real_release(name), name, shape)
        assert {(p.claim, p.part) for p in _refuted(pieces).values()} <= expected
        assert [p.claim for p in pieces] == list(claims_of(shape))
        assert all(p.counts.paths for p in pieces)


_A, _B = Feature(0, 4, "A"), Feature(4, 4, "B")
_SHIFTED_CUT = Scenario(EngineConfig(8, 4, 4, 12, 1, 1, 1, 1, 1), (ScenarioRequest(10, (_A, _B)),))


@needs_releases
@pytest.mark.parametrize(("name", "stalls"), [("0.32.0", True), ("0.33.0", False)])
def test_the_shifted_cut_on_plain_integers(name: str, stalls: bool) -> None:
    """What the proof finds small, a person finds in the numbers of the report (47738)."""
    code = RunCode(real_release(name))
    found = judged(_SHIFTED_CUT, run_plain(code, _SHIFTED_CUT), name, "no-stall")
    assert bool(found) == stalls
    steps = list(islice(run_plain(code, _SHIFTED_CUT), 50))
    assert (len(steps) == 50) == stalls
    if not stalls:
        assert steps[-1].state.requests[0].status == "finished"
        assert not any(holders for _, holders in steps[-1].state.book.references)


# Each claim can fail

_CUT = ("min(num_new_tokens, start_pos - num_computed_tokens)", "num_new_tokens")
_WINDOW = (
    "num_computed_tokens + num_new_tokens + shift_computed_tokens",
    "num_computed_tokens + num_new_tokens",
)
_NOTICES = "free_encoder_mm_hashes=self.encoder_cache_manager.get_freed_mm_hashes()"
_NO_NOTICES = (_NOTICES, "free_encoder_mm_hashes=[]")
_ALL_NOTICES = (_NOTICES, "free_encoder_mm_hashes=list(self.encoder_cache_manager.cached)")
_PROCESSED = "start_pos + num_tokens <= request.num_computed_tokens"
_EARLY = (_PROCESSED, "start_pos <= request.num_computed_tokens")
_IN_FLIGHT = "request.num_in_flight_tokens += num_scheduled_token"
_SKIPS = "if num_new_tokens == 0:\n                        "

_BREAKS: dict[str, tuple[RunShape, tuple[tuple[str, str], ...]]] = {
    "no-error": (ALONE, (("assert token_budget >= 0", "assert token_budget > 0"),)),
    "target-resident": (RunShape("AB"), (_CUT,)),
    "drafter-resident-or-boundary": (MASKED, (_WINDOW,)),
    "need-agrees": (DRAFTED, (_WINDOW,)),
    "item-whole": (
        RunShape("A", whole_items=True),
        (("< start_pos + num_encoder_tokens", "< start_pos + num_encoder_tokens - 1"),),
    ),
    "slots-conserved": (ALONE, (("self.num_free_slots -= num_encoder_embeds", "pass"),)),
    "views-agree": (RunShape("AB"), (_NO_NOTICES,)),
    "worker-bounded": (RunShape("AB"), (_NO_NOTICES,)),
    "evicted-not-live": (ALONE, (_ALL_NOTICES,)),
    "freed-not-needed": (ALONE, (_EARLY,)),
    "dropped-in-update": (
        ALONE,
        (
            (_IN_FLIGHT, "self.encoder_cache_manager.free(request)"),
            ("request.num_in_flight_tokens -= num_tokens_scheduled", "pass"),
        ),
    ),
    "held-until-last-use": (ALONE, (_EARLY,)),
    "no-idle-references": (
        WHOLE,
        (
            (
                f"{_SKIPS}skip",
                f"{_SKIPS}self.encoder_cache_manager.allocate(request, 0); skip",
            ),
        ),
    ),
    "released": (
        ALONE,
        (
            (_PROCESSED, _PROCESSED.replace("<=", "<")),
            ("ec_delay_free\n        self.encoder_cache_manager.free(request)", "ec_delay_free"),
        ),
    ),
    "no-stall": (RunShape("AB"), ((_CUT[0], "0"),)),
    "no-thrash": (ALONE, (("request.num_computed_tokens += num_scheduled_token", "pass"),)),
}
"""For each claim a change of 0.33.0 that breaks it, and the shape that shows it."""


@needs_releases
@pytest.mark.parametrize("claim", RULES)
def test_each_claim_can_fail(claim: str) -> None:
    """Wrong: a claim on runs that passes whatever the code does."""
    shape, changes = _BREAKS[claim]
    assert claim not in _as_released(shape)
    module = BOOK_MODULE if claim == "slots-conserved" else SCHEDULER_MODULE
    pieces = run_pieces(_changed("0.33.0", module, *changes), "mutant", shape)
    verdicts = {piece.claim: (piece.verdict, piece.detail) for piece in pieces}
    assert verdicts[claim][0] is Verdict.REFUTED, verdicts


# Faults of ours, and code that is not modelled


@needs_releases
def test_a_sampler_that_never_yields_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: a stand-in that leaves out what the engine does, and every claim passes."""
    assert not _as_released(ALONE)
    monkeypatch.setattr(run_code._Run, "_sample", lambda self, entry: ([], 0))
    assert "no-stall" in _refuted(run_pieces(real_release("0.33.0"), "0.33.0", ALONE))


@needs_releases
def test_a_worker_that_drops_nothing_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: a stand-in for the worker that nobody compares with the book."""
    execute = run_code._Run._execute

    def keeps(self: Any, inputs: Any, _notices: Any, *, starts: bool) -> Any:
        return execute(self, inputs, (), starts=starts)

    monkeypatch.setattr(run_code._Run, "_execute", keeps)
    found = _refuted(run_pieces(real_release("0.33.0"), "0.33.0", RunShape("AB")))
    assert {"views-agree", "worker-bounded"} <= found.keys()


@needs_releases
@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        (
            "self.num_lookahead_tokens",
            "self.num_tokens_of_another_kind",
            "num_tokens_of_another_kind",
        ),
        ("new_step_starts()", "step_that_is_unknown()", "step_that_is_unknown"),
        ("self._free_encoder_inputs(request)", "unknown_function(request)", "unknown_function"),
        ("token_budget -= num_new_tokens", "token_budget -= num_new_tokens // 1", "divides"),
    ],
)
def test_what_is_not_modelled_is_unknown(old: str, new: str, named: str) -> None:
    """Wrong: a name that nothing supplies, taken for an error of the code's or for a proof."""
    pieces = run_pieces(_changed("0.33.0", SCHEDULER_MODULE, (old, new)), "mutant", ALONE)
    assert {piece.verdict for piece in pieces} == {Verdict.UNKNOWN}
    assert all(named in piece.detail for piece in pieces)


@needs_releases
def test_an_unfinished_run_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: paths that were not run hold the counterexample, and the rest pass for a proof."""
    monkeypatch.setattr(run_scenario, "PATH_BUDGET", 3)
    pieces = run_pieces(real_release("0.33.0"), "0.33.0", ALONE)
    assert {piece.verdict for piece in pieces} == {Verdict.UNKNOWN}
    assert all(piece.counts.unfinished and "unfinished" in piece.detail for piece in pieces)


# What surrounds a run


def test_plain_attributes_are_read_from_the_source(tmp_path: Path) -> None:
    """Wrong: an attribute that depends on the configuration, taken for what it is at first."""
    (tmp_path / "vllm" / "v1" / "core").mkdir(parents=True)
    (tmp_path / "vllm" / "thing.py").write_text(
        "class Thing:\n"
        "    def __init__(self, size):\n"
        "        self.count: int = 0\n"
        "        self.names = set()\n"
        "        self.queue = make_queue(size)\n"
        "        self.size = size\n"
        "        self.copies = list(size)\n"
        "        self.store = None\n"
        "        if size:\n"
        "            self.store = size\n"
    )
    release = ReleaseSource(tmp_path / "vllm", OVERRIDES)
    values = InitialValues(release.module("vllm.thing"), "Thing", {"make_queue": list})
    first, second = values.new(), values.new()
    assert first == second == {"count": 0, "names": set(), "queue": []}
    assert first["names"] is not second["names"]


@needs_releases
def test_a_name_is_the_same_object_wherever_it_is_imported() -> None:
    """Wrong: two modules with an enum each, whose members never equal one another."""
    release = real_release("0.33.0")
    here = release.module(SCHEDULER_MODULE).value("RequestStatus")
    assert here is release.module("vllm.v1.request").value("RequestStatus")


@needs_releases
def test_shapes_follow_the_release() -> None:
    """Wrong: a counterexample with a shift that the release does not have."""
    assert {shape.shift for shape in shapes_of_runs(real_release("0.24.0"), 2, 2)} == {0, 1}
    assert {shape.shift for shape in shapes_of_runs(real_release("0.33.0"), 2, 2)} == {0, 1, 2}
    longer = {shape.num_passes for shape in shapes_of_runs(real_release("0.33.0"), 1, 3)}
    assert longer == {2, 3}
    assert {len(shape.identifiers) for shape in shapes_of_runs(real_release("0.33.0"), 1, 3)} == {1}


@needs_releases
def test_a_counterexample_is_a_scenario_of_the_loop() -> None:
    """Wrong: a counterexample that no other command can run again."""
    finding = _as_released(WHOLE)["no-stall"].finding
    assert finding is not None
    assert isinstance(finding.case, Scenario)
    assert describe_case(finding.case).startswith("A[1,3) of 3; B=2, C=2")
    assert finding_to_json(finding)["case"]["kind"] == "scenario"
    document = loads(dumps_scenario(finding.case), "scenario")
    assert document.scenario == finding.case
    with pytest.raises(TypeError, match="on no function"):
        _ = finding.function_case


def test_claims_choose_runs() -> None:
    """Wrong: a claim that only runs show and that `--claim` runs nothing for."""
    assert parts_of_claims(["views-agree"]) == ("runs",)
    assert set(parts_of_claims(["no-stall"])) == {"scheduling", "runs"}
    with pytest.raises(InputError, match="unknown claim"):
        parts_of_claims(["views-agree", "no-such-claim"])


@needs_releases
def test_counterexamples_are_written_to_be_replayed(tmp_path: Path) -> None:
    """Wrong: a file that no command reads, or a finding on single calls that passes for a run."""
    finding = _as_released(WHOLE)["no-stall"].finding
    assert finding is not None
    source = unpacked(cache_folder(), "0.33.0")
    assert source is not None
    paths = write_scenarios([finding, finding], tmp_path)
    assert [load(path).scenario for path in paths] == [finding.case]
    (command,) = replay_commands(paths, source)
    assert command == f"residency replay {paths[0]} --target vllm --release 0.33.0"
