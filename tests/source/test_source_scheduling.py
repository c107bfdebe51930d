"""Proofs on the scheduling of encoder inputs: right code is proved, broken code refuted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from impl.vllm.launch.source import cache_folder, unpacked
from proofs.commands.prove import parts_of_claims
from proofs.describe.cases import describe_case
from proofs.source.ask.piece import Piece
from proofs.source.code.encoder_passes import has_reservation, has_scheduling
from proofs.source.code.recorders import OVERRIDES
from proofs.source.code.release import ReleaseSource
from proofs.source.code.source_target import SourceTarget
from proofs.source.passes.scheduling import scheduling_pieces, scheduling_shapes
from proofs.source.passes.scheduling_scenario import SchedulingShape
from spec.errors import InputError
from spec.functions.case_files import finding_to_json
from spec.functions.findings import finding
from spec.functions.scheduling_cases import BookEntry, SchedulingCase
from spec.monitor.functions.scheduled_passes import check_scheduling
from spec.record.feature import Feature
from spec.verdict import Verdict
from tests.recorders.record_releases import recorded
from tests.support.fake_scheduler import write_scheduling_release
from tests.support.real_releases import pieces_on
from tests.support.source_mutants import shape_of

_ONE = (True,)
_TWO = (True, True)


QUICK = (
    shape_of("A", "absent"),
    shape_of("A", "absent", passes=1),
    shape_of("A", "absent", whole=True),
    shape_of("A", "absent", masked=True),
    shape_of("A", "another", whole=True),
    shape_of("AA", "absent"),
    shape_of("AB", "absent", "absent"),
    shape_of("AB", "absent", "nobody", oldest="B"),
    shape_of("A", "absent", whole=True, passes=2),
    shape_of("AB", "absent", "absent", passes=2),
    shape_of("AB", "absent", "absent", whole=True),
)
"""Shapes that show every fault below, the cheapest first."""


def _pieces(release: ReleaseSource, shapes: Sequence[SchedulingShape]) -> list[Piece]:
    return [piece for shape in shapes for piece in scheduling_pieces(release, "fake", shape)]


def _release(package: Path) -> ReleaseSource:
    return ReleaseSource(package, OVERRIDES)


def test_right_scheduling_is_proved(tmp_path: Path) -> None:
    """A proof that failed on right code would say nothing when it fails on a release."""
    pieces = _pieces(_release(write_scheduling_release(tmp_path)), QUICK)
    assert [p for p in pieces if p.verdict is not Verdict.PROVED] == []
    assert {p.claim for p in pieces} == {
        "target-resident",
        "drafter-resident-or-boundary",
        "need-agrees",
        "item-whole",
        "slots-conserved",
        "no-error",
        "no-stall",
    }
    assert all(p.z3 == p.cvc5 == "unsat" and p.counts.paths for p in pieces)


_CUT = "last = min(last, max(position.offset, first))"


@pytest.mark.parametrize(
    ("claim", "old", "new"),
    [
        ("no-stall", _CUT, "last = max(position.offset - shift_computed_tokens, first)"),
        ("no-stall", "last = min(last, position.offset)", "last = max(first, position.offset - 1)"),
        ("need-agrees", "stop = min(seen_to", "stop = min(last"),
        ("drafter-resident-or-boundary", "stop = min(seen_to", "stop = min(last"),
        ("need-agrees", "+ shift_computed_tokens", ""),
        ("target-resident", _CUT, "pass"),
        ("target-resident", "max(position.offset, first)", "max(position.offset + 1, first)"),
        ("item-whole", "first <= position.offset", "first < position.offset"),
        ("item-whole", "last < end", "last < end - 1"),
        ("item-whole", "position.offset)\n                    break", "end - 1); break"),
        ("slots-conserved", "budget, rows)", "budget, 0)"),
        ("slots-conserved", "names.add(name)", "pass"),
        ("no-error", "names.add(name)", "names[name]"),
    ],
)
def test_broken_scheduling_is_refuted(tmp_path: Path, claim: str, old: str, new: str) -> None:
    """Each duty of the scheduling, broken, is found and replayed on plain integers."""
    release = _release(write_scheduling_release(tmp_path, old, new))
    for shape in QUICK:
        found = [
            piece.finding
            for piece in scheduling_pieces(release, "fake", shape)
            if piece.claim == claim and piece.finding is not None
        ]
        if found:
            assert found[0].claim == claim
            assert found[0].target == f"fake {shape.part}"
            assert isinstance(found[0].case, SchedulingCase)
            found[0].case.validate()
            return
    pytest.fail(f"nothing breaks {claim}")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("shift_computed_tokens=self.num_prefill_lookahead", "shift_computed_tokens=2"),
        ("self._try_schedule_encoder_inputs(", "self._try_something_else("),
        ("rows = [], [], [], set(), 0", "rows = [], [], [], set(), self.rows_from_elsewhere"),
        ("last - first, budget, loaded", "last - first, budget, [0]"),
        ("stop = min(seen_to", "stop = min_of_window(seen_to"),
    ],
)
def test_unknown_scheduling_is_not_proved(tmp_path: Path, old: str, new: str) -> None:
    """Calls, names and results that are not modelled never pass as a proof."""
    release = _release(write_scheduling_release(tmp_path, old, new))
    pieces = _pieces(release, QUICK[:1])
    assert {p.verdict for p in pieces} == {Verdict.UNKNOWN}
    assert all("not modelled" in p.detail for p in pieces)


def test_an_unfinished_exploration_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths that were not run may hold the counterexample."""
    from proofs.source.passes import scheduling_scenario
    from proofs.symbolic.exploration import Exploration

    limited = partial(Exploration, path_budget=3)
    monkeypatch.setattr(scheduling_scenario, "Exploration", limited)
    pieces = _pieces(_release(write_scheduling_release(tmp_path)), QUICK[:1])
    assert {p.verdict for p in pieces} == {Verdict.UNKNOWN}
    assert all(p.counts.unfinished for p in pieces)


def test_a_shift_above_1_needs_the_reservation(tmp_path: Path) -> None:
    """Releases without it give 0 or 1; a counterexample with 2 would be none of theirs."""
    release = _release(write_scheduling_release(tmp_path))
    assert has_scheduling(release)
    assert not any(shape.far for shape in scheduling_shapes(release, 3))


_A, _B = Feature(0, 4, "A"), Feature(4, 4, "B")


@pytest.mark.parametrize(
    ("case", "scheduled", "claims"),
    [
        # Two items that fit the cache one at a time: the first is finished, then the second runs.
        (SchedulingCase((_A, _B), 10, 0, 8, 4, 4, 1, num_passes=2), [4, 6], set()),
        # Somebody else holds the cache: no stall of its own.
        (
            SchedulingCase((_A,), 8, 0, 8, 4, 4, entries=(BookEntry("X", 4, "another"),)),
            [0],
            set(),
        ),
        # The encoder's budget does not hold the item: not a legal configuration.
        (SchedulingCase((_A,), 8, 0, 8, 3, 4), [0], set()),
    ],
)
def test_plain_passes(
    tmp_path: Path, case: SchedulingCase, scheduled: list[int], claims: set[str]
) -> None:
    """What the proof runs on symbols does on plain integers what a person expects."""
    target = SourceTarget(_release(write_scheduling_release(tmp_path)), "fake")
    observation = target.scheduling(case)
    assert [seen.num_scheduled_tokens for seen in observation.passes] == scheduled
    assert {f.claim for f in check_scheduling(case, observation, "fake scheduling")} == claims


def test_claims_choose_the_parts() -> None:
    """A claim that runs nothing, or everything, is not what was asked for."""
    assert parts_of_claims(["no-stall"]) == ("scheduling", "runs")
    assert "scheduling" not in parts_of_claims(["rows-exact"])
    assert {"book", "scheduling"} <= set(parts_of_claims(["slots-conserved"]))
    with pytest.raises(InputError, match="unknown claim"):
        parts_of_claims(["no-stall", "no-such-claim"])


def test_a_counterexample_is_told_in_one_line_and_written_as_json() -> None:
    """What a person reads and what a program reads say the same."""
    case = SchedulingCase(
        (_A,), 8, 0, 8, 4, 4, 1, whole_items=True, entries=(BookEntry("A", 4, "another"),)
    )
    assert describe_case(case) == (
        "0 computed of 8 with A[0,4); token budget 8, encoder budget 4, cache 4, scheduler's "
        "shift 1, items whole; book: A (4 rows) held by another; 1 pass"
    )
    found = finding(
        "no-stall", case, observed="0", expected="1", target="x scheduling", mechanism="nothing"
    )
    assert finding_to_json(found)["case"]["entries"][0]["holder"] == "another"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_computed_tokens": 10}, "something must be left"),
        ({"token_budget": 0}, "at least 1"),
        ({"encoder_budget": -1}, "not negative"),
        ({"prefill_len": 7}, "must span a token and end by"),
        ({"entries": (BookEntry("A", 3),)}, "as many as the features"),
        ({"entries": (BookEntry("C", 3), BookEntry("C", 3))}, "listed twice"),
        ({"entries": (BookEntry("C", 5),)}, "do not fit a cache of 4"),
        ({"entries": (BookEntry("C", 1, "itself"),)}, "no feature 'C' to hold"),
    ],
)
def test_impossible_cases_are_refused(change: dict[str, Any], message: str) -> None:
    """No scheduler comes to them, so what they show is nobody's fault."""
    case = SchedulingCase((_A, _B), 10, 0, 8, 4, 4)
    case.validate()
    with pytest.raises(InputError, match=message):
        replace(case, **change).validate()


# Real releases


@cache
def _real(name: str) -> ReleaseSource:
    source = unpacked(cache_folder(), name)
    if source is None:
        pytest.skip(f"vLLM {name} IS NOT HERE, so its scheduling was not proved; run `make vllm`")
    return _release(source.package)


RELEASE_SHAPES = (
    *QUICK[:4],
    shape_of("A", "absent", far=True),
    shape_of("A", "absent", far=True, passes=1),
    *QUICK[4:],
    shape_of("A", "nobody"),
    shape_of("A", "absent", whole=True, far=True),
    shape_of("AB", "absent", "another", whole=True),
    shape_of("AB", "absent", "absent", far=True, passes=1),
    shape_of("A", "absent", whole=True, far=True, passes=1),
    shape_of("AB", "absent", "absent", whole=True, far=True),
)
"""Shapes that show every recorded claim of a release; `.ci/run` proves all shapes, and compares
every part of them with the record."""

_OLD = {"0.23.0", "0.24.0"}
_ALL = {*_OLD, "0.33.0"}


@pytest.mark.vllm
@pytest.mark.parametrize(
    ("case", "claim", "releases"),
    [
        # 47738: the cut before B comes a token early, so that A is never finished.
        (SchedulingCase((_A, _B), 10, 0, 8, 4, 4, 1, num_passes=3), "no-stall", _OLD),
        # 51603: A lies at the boundary and is not encoded ahead.
        (SchedulingCase((_B,), 10, 0, 4, 4, 4, 1), "need-agrees", _OLD),
        # 51603: the same with a mask, so that A starts in the range.
        (
            SchedulingCase((Feature(4, 4, "A", (False, False, True, True)),), 10, 0, 6, 4, 4, 1),
            "drafter-resident-or-boundary",
            _OLD,
        ),
        # 52306: a chunk that starts on an item splits it.
        (SchedulingCase((_A,), 10, 0, 3, 4, 4, whole_items=True), "item-whole", _OLD),
        # An item in the book is split before that is tested.
        (
            SchedulingCase((_B,), 10, 0, 6, 4, 4, whole_items=True, entries=(BookEntry("A", 4),)),
            "item-whole",
            set(),
        ),
        (
            SchedulingCase((_B,), 10, 0, 6, 4, 4, whole_items=True, entries=(BookEntry("B", 4),)),
            "item-whole",
            _OLD,
        ),
        # The cut before a whole item comes a token early: nothing is left, or A is split.
        (SchedulingCase((Feature(1, 2, "A"),), 4, 0, 2, 2, 2, 1, True), "no-stall", _ALL),
        (SchedulingCase((_A, _B), 10, 0, 6, 8, 8, 1, True), "item-whole", _ALL),
        # What is kept free before the prefill's end takes the last token.
        (
            SchedulingCase((Feature(0, 1, "A"), Feature(1, 1, "B")), 2, 0, 3, 1, 1, 2),
            "no-stall",
            {"0.33.0"},
        ),
    ],
)
@pytest.mark.parametrize("name", sorted(_ALL))
def test_known_faults_on_plain_integers(
    name: str, case: SchedulingCase, claim: str, releases: set[str]
) -> None:
    """What the proofs find small, a person finds in the numbers of the reports."""
    case.validate()
    release = _real(name)
    if case.scheduler_shift > 1 and not has_reservation(release):
        pytest.skip(f"{name} has no shift above 1")
    observation = SourceTarget(release, name).scheduling(case)
    violated = {found.claim for found in check_scheduling(case, observation, name)}
    assert (claim in violated) == (name in releases)


@pytest.mark.vllm
@pytest.mark.parametrize("name", ["0.23.0", "0.24.0", "0.33.0"])
def test_the_recorded_claims_are_refuted_and_no_others(name: str) -> None:
    """Anything more is news, anything less a proof that has stopped looking."""
    release = _real(name)
    pieces = [
        piece
        for shape in RELEASE_SHAPES
        if has_reservation(release) or not shape.far
        for piece in pieces_on(release, name, shape)
    ]
    assert {p.verdict for p in pieces} == {Verdict.PROVED, Verdict.REFUTED}
    refuted = {(p.claim, p.part) for p in pieces if p.verdict is Verdict.REFUTED}
    expected = {(claim, part) for claim, part in recorded()[name]["source_refuted"]}
    of_scheduling = {pair for pair in expected if pair[1].startswith("scheduling")}
    assert refuted <= of_scheduling
    assert {claim for claim, _ in refuted} == {claim for claim, _ in of_scheduling}
    assert all(p.finding for p in pieces if p.verdict is Verdict.REFUTED)
