"""Every claim is closed, and no link of the ledger can be cut unseen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from proofs.ledger import reasons
from proofs.ledger.build import build_ledger, source_parts
from proofs.ledger.gaps import Gap, gaps
from proofs.ledger.records import Ledger, TestRecord
from proofs.ledger.tests import TESTS
from proofs.ledger.witnesses import (
    break_loop_assumption,
    run_function_witness,
    run_loop_witness,
    violated_without,
)
from proofs.recorded import FOLDER
from proofs.source.ask.piece import RULE
from proofs.source.code.recorders import OVERRIDES
from proofs.source.code.release import ReleaseSource
from proofs.source.here import pieces_of
from proofs.source.jobs import Scope
from proofs.source.passes.run_scenario import FEW_PASSES
from spec.claims.assumptions import ASSUMPTIONS, assumption
from spec.claims.texts import ALL_TEXTS, LOOP_CLAIMS, function_claim, loop_claim
from spec.functions.cases import WindowCase
from spec.record.config import EngineConfig
from spec.record.scenario import Scenario, ScenarioRequest
from tests.support.fake_release import write_release
from tests.support.found_tests import found

CLAIMS = {
    "target-resident", "drafter-resident-or-boundary", "boundary-miss-tolerated",
    "interior-miss-raises", "views-agree", "worker-bounded", "evicted-not-live",
    "dropped-in-update", "freed-not-needed", "held-until-last-use", "fresh-tensor",
    "payload-available", "item-whole", "need-agrees", "rows-exact", "mask-exact", "window-exact",
    "row-range-exact", "boundary-used-when-resident", "runners-agree", "slots-conserved",
    "no-idle-references", "no-error", "no-stall", "no-thrash", "work-conserving", "released",
    "book-exact", "counts-agree", "pass-uses-budget", "threshold-kept", "reservation-kept",
}  # fmt: skip
"""What the project promises to settle."""

TEXT = Scenario(EngineConfig(4, 1, 1, 8), (ScenarioRequest(1),))
"""One token of text, in which next to nothing happens."""


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    """The project's ledger, its tests looked up."""
    return build_ledger(tuple(found(TESTS)))


def test_every_claim_is_closed(ledger: Ledger) -> None:
    """Wrong: a claim without a proof or a reason, a witness, a fault, an assumption or a test."""
    assert gaps(ledger) == ()
    assert ledger.is_explored


def test_no_claim_was_dropped(ledger: Ledger) -> None:
    """Wrong: a claim that left the code took everything about it along, and nobody noticed."""
    assert {record.id for record in ledger.claims} == CLAIMS == set(ALL_TEXTS)


# Every link, cut

NO_LINKS = {
    ("Checked", "level"),
    ("Scope", "engine"),
    ("FaultRecord", "may_also_break"),
    ("ClaimRecord", "left_to_search"),
    ("ClaimRecord", "predicates"),
}
"""Fields that say where a record belongs, or what is allowed or told beside the links."""

READ_OFF = {
    *(("ClaimRecord", field) for field in ("proofs", "refuted", "source", "explored")),
    ("ClaimRecord", "explorer_faults"),
    ("AssumptionRecord", "claims"),
    ("AssumptionRecord", "ablations"),
    ("FaultRecord", "ablations"),
    ("FaultRecord", "explorer"),
    ("Checked", "scopes"),
    ("Scope", "claims"),
    ("ObligationRecord", "states"),
    ("ObligationRecord", "ablations"),
    ("AblationRecord", "drops"),
    ("ClaimRecord", "assumptions"),
    ("ClaimRecord", "tests"),
}
"""Fields that are written in one place only, so that nothing can be cut on one side of the link.

Below they may not be empty without a reason, nor name what is not there; that a claim names every
assumption it rests on is seen by running it without each.
"""


def _cut(record: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The record with each single link cut, and what was cut."""
    for field in fields(record):
        if (type(record).__name__, field.name) in NO_LINKS:
            continue
        value = getattr(record, field.name)
        if (type(record).__name__, field.name) in READ_OFF:
            continue
        for what, changed in _cut_value(value, f"{path}.{field.name}"):
            yield what, replace(record, **{field.name: changed})


def _cut_value(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    match value:
        case tuple():
            for index, element in enumerate(value):
                before, after = value[:index], value[index + 1 :]
                yield f"{path}[{index}]", before + after
                if is_dataclass(element):
                    for what, changed in _cut_value(element, f"{path}[{index}]"):
                        yield what, (*before, changed, *after)
        case str():
            if value:
                yield path, ""
        case bool():
            if value:
                yield path, False
        case int():
            if value:
                yield path, 0
        case _ if is_dataclass(value):
            if path.endswith(".witness"):
                yield path, None
            yield from _cut(value, path)


@pytest.mark.parametrize(
    "part", ["claims", "assumptions", "faults", "obligations", "scopes", "tests"]
)
def test_no_link_can_be_cut_unseen(ledger: Ledger, part: str) -> None:
    """Wrong: a link whose loss the checker does not see may be lost already."""
    cut = list(_cut_value(getattr(ledger, part), part))
    if part in ("obligations", "scopes"):
        # What leads there is read off them; one of each claim and room is cut inside.
        first = {(o.claim, o.room): i for i, o in reversed(list(enumerate(ledger.obligations)))}
        places = first.values() if part == "obligations" else range(len(ledger.scopes))
        cut = [c for c in cut if c[0].startswith(tuple(f"{part}[{index}]." for index in places))]
    gaps_before = set(gaps(ledger))
    unseen = [
        what
        for what, changed in cut
        if gaps_before.issuperset(gaps(replace(ledger, **{part: changed})))
    ]
    assert unseen == []
    assert cut


@pytest.mark.parametrize(
    "field", ["proofs", "refuted", "source", "explored", "explorer_faults", "tests"]
)
def test_what_is_read_off_may_not_be_empty_without_a_reason(ledger: Ledger, field: str) -> None:
    """Wrong: the last proof of a claim goes, and nobody has to say why there is none."""
    linked = [record.id for record in ledger.claims if getattr(record, field)]
    assert linked
    for claim_id in linked:
        assert gaps(_with_claim(ledger, claim_id, **{field: ()}))


@pytest.mark.parametrize("group", ["boundary", "residency", "references"])
def test_proofs_that_name_another_claim_are_seen(ledger: Ledger, group: str) -> None:
    """Wrong: a proof counts for a claim that it does not state, and misses where it belongs."""
    renamed = tuple(
        replace(o, claim="no-error") if o.name.startswith(f"{group}.") else o
        for o in ledger.obligations
    )
    stated = {
        claim
        for o in ledger.obligations
        if o.name.startswith(f"{group}.")
        for claim in o.states
        if claim == o.claim
    }
    missing = {gap.subject for gap in gaps(replace(ledger, obligations=renamed))}
    elsewhere = {
        o.claim for o in renamed if o.claim in o.states and not o.name.startswith(f"{group}.")
    }
    assert stated
    assert stated - elsewhere <= missing
    assert missing


def _with_claim(ledger: Ledger, claim_id: str, **changes: Any) -> Ledger:
    record = replace(ledger.claim(claim_id), **changes)
    return replace(ledger, claims=tuple(record if c.id == claim_id else c for c in ledger.claims))


def test_a_gap_says_what_is_missing(ledger: Ledger) -> None:
    """Wrong: whoever breaks a link is not told which."""
    assert Gap("rows-exact", "no test is about it") in gaps(
        _with_claim(ledger, "rows-exact", tests=())
    )
    record = ledger.claim("views-agree")
    (in_loop,) = record.checked
    without_witness = replace(in_loop, witness=None)
    assert Gap("views-agree", "it has no witness at the level of loop") in gaps(
        _with_claim(ledger, "views-agree", checked=(without_witness,))
    )


@pytest.mark.parametrize(
    ("claim_id", "field"),
    [("window-exact", "why_no_proof"), ("rows-exact", "why_no_source"), ("rows-exact", "why_not")],
)
def test_a_reason_beside_a_link_is_a_gap(ledger: Ledger, claim_id: str, field: str) -> None:
    """Wrong: a claim that was proved in the meantime is still excused."""
    assert gaps(_with_claim(ledger, claim_id, **{field: "nobody tried"}))


def test_a_link_to_nothing_is_a_gap(ledger: Ledger) -> None:
    """Wrong: a name that was misspelt, or whose bearer was renamed, counts as a link."""
    for field in ("assumptions", "tests"):
        assert gaps(_with_claim(ledger, "rows-exact", **{field: ("no-such-thing",)}))


def test_every_reason_is_about_something_that_exists(ledger: Ledger) -> None:
    """Wrong: a reason under a name that was dropped stays, and excuses nobody."""
    faults = {fault.name for fault in ledger.faults}
    for texts in (
        reasons.WHY_NO_PROOF,
        reasons.LEFT_TO_SEARCH,
        reasons.WHY_NO_SOURCE,
        reasons.WHY_NOT_AT_A_LEVEL,
        reasons.WHY_NOT_EXPLORED,
        reasons.WHY_NO_EXPLORER_FAULT,
        TESTS,
    ):
        assert set(texts) <= CLAIMS
    for about in (reasons.WHY_NO_ABLATION, reasons.ABLATIONS_OF_FAULTS):
        assert set(about) <= faults
    by_name = {f.name for f in ledger.faults if f.ablations and f.ablations[0].endswith(f.name)}
    assert not set(reasons.ABLATIONS_OF_FAULTS) & by_name


def test_links_to_the_explorer_are_asked_for_once_it_is_recorded(tmp_path: Path) -> None:
    """Wrong: the record of the exhaustive search is there, and no claim has to say how it fared."""
    record = tmp_path / "explore.json"
    assert not build_ledger(explore_file=record).is_explored
    seen = {
        "scope": "small",
        "totals": {"cases": 2, "states": 1200},
        "claims": {"no-stall": "HELD", "views-agree": "HELD", "released": "VACUOUS"},
        "faults": {
            "shifted-cut": {"claims": {"no-stall": {}}},
            "cut-ends-late": {"claims": {"views-agree": {}}},
        },
        "unseen": {"rows-by-position": "there are no rows"},
    }
    record.write_text(json.dumps(seen), encoding="utf-8")
    explored = build_ledger(explore_file=record)
    assert explored.claim("no-stall").explored == ("the small scope (2 cases, 1,200 states)",)
    assert explored.claim("no-stall").explorer_faults == ("shifted-cut",)
    found = gaps(explored)
    missing = {gap.subject for gap in found}
    assert {"released", "cut-ends-late", "notices-lost"} <= missing
    assert not {"no-stall", "shifted-cut", "rows-exact", "rows-by-position"} & missing
    assert Gap("cut-ends-late", "the explorer sees it break views-agree, and search must not") in (
        found
    )


# What the ledger rests on can fail


def test_a_case_without_the_premise_is_no_witness() -> None:
    """Wrong: a witness counts although nothing happens in it."""
    nothing = replace(function_claim("window-exact"), witness=WindowCase((), 0, 1))
    assert run_function_witness(nothing).premises == 0
    about_any_run = {
        "dropped-in-update",
        "counts-agree",
        "no-error",
        "no-stall",
        "pass-uses-budget",
        "released",
    }
    seen = {
        c.id for c in LOOP_CLAIMS.values() if run_loop_witness(replace(c, witness=TEXT)).premises
    }
    assert seen == about_any_run


def test_a_witness_that_breaks_an_assumption_must_say_so() -> None:
    """Wrong: a witness may violate other claims without a word."""
    witness = run_loop_witness(replace(loop_claim("interior-miss-raises"), witness_without=""))
    assert "need-agrees" in witness.violated


@pytest.mark.parametrize("name", [a.id for a in ASSUMPTIONS.values() if a.on_runs])
def test_claims_that_break_without_an_assumption_rest_on_it(name: str) -> None:
    """Wrong: a claim fails for want of something that it does not say it needs."""
    breaking = assumption(name).on_runs
    assert breaking is not None
    broken = violated_without(breaking)
    assert {c for c in broken if name not in loop_claim(c).assumptions} == set()


@pytest.mark.parametrize("name", ["outputs-in-order", "budgets-fixed", "everything-fits-alone"])
def test_a_case_that_shows_nothing_is_no_case(name: str) -> None:
    """Wrong: any scenario passes for one that shows what the assumption is for."""
    shown = assumption(name)
    assert shown.on_runs is not None
    breaking = break_loop_assumption(replace(shown, on_runs=replace(shown.on_runs, scenario=TEXT)))
    assert breaking is not None
    assert not breaking.shown


@pytest.mark.parametrize(
    "test",
    [
        "test_nowhere::test_a",
        "monitor.test_loop_monitor::test_that_nobody_wrote",
        "monitor.test_loop_monitor::check",
        "monitor.test_loop_monitor::test_other_rows",
        "faults.test_loop_faults::test_record_of_a_fault_says_what_shows_and_why[shifted-cut]",
        "faults.test_loop_faults::test_record_of_a_fault_says_what_shows_and_why[mask-fill]",
    ],
)
def test_tests_that_are_not_there_or_about_others_are_not_found(test: str) -> None:
    """Wrong: any name passes for a test of the claim."""
    assert list(found({"mask-exact": (test,)})) == []


def test_tests_are_found_by_text_and_by_parameter() -> None:
    """Wrong: a test that is there is taken for missing."""
    by_text = "monitor.test_loop_monitor::test_other_mask"
    by_claim = (
        "claims.test_loop_claims::test_claim_names_exactly_the_faults_that_break_it[mask-exact]"
    )
    by_fault = (
        "faults.test_loop_faults::test_record_of_a_fault_says_what_shows_and_why[mask-fills-span]"
    )
    named = {"mask-exact": (by_text, by_claim, by_fault)}
    assert list(found(named)) == [TestRecord(t, "mask-exact") for t in named["mask-exact"]]


# What a release's source is asked


def test_parts_of_the_source_are_those_that_are_asked(tmp_path: Path) -> None:
    """Wrong: the ledger counts a claim on a part on which nobody asks it."""
    release = ReleaseSource(write_release(tmp_path), OVERRIDES)
    asked: dict[str, set[str]] = {}
    for piece in pieces_of(release, "fake", ("free", "window", "row_range"), Scope(1, FEW_PASSES)):
        if not piece.claim.startswith(RULE):
            asked.setdefault(piece.part, set()).add(piece.claim)
    parts = source_parts()
    assert asked == {part: set(parts[part]) for part in asked}
    assert set(asked) == {"free", "free past the prompt", "window", "row_range"}


def test_what_was_refuted_on_a_release_is_asked_there() -> None:
    """Wrong: a part of the source under another name, or with fewer claims than it has."""
    parts = source_parts()
    for recorded in json.loads((FOLDER / "releases.json").read_text(encoding="utf-8")).values():
        for claim_id, part in recorded["source_refuted"]:
            assert claim_id.startswith(RULE) or claim_id in parts[part]
