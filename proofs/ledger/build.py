"""Fill the ledger from the code: claims, proofs, searches, switches; and run its witnesses."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from impl.faults.switches import FAULTS, Fault
from proofs.ledger import reasons
from proofs.ledger.records import (
    AblationRecord,
    AssumptionRecord,
    Checked,
    ClaimRecord,
    FaultRecord,
    Ledger,
    ObligationRecord,
    Room,
    Scope,
    TestRecord,
)
from proofs.ledger.tests import TESTS
from proofs.ledger.witnesses import (
    break_assumption,
    break_loop_assumption,
    run_function_witness,
    run_loop_witness,
)
from proofs.recorded import FOLDER
from proofs.search.functions.parts import CLAIMS_OF_PART
from proofs.smt.obligation import Ablation, Obligation
from proofs.smt.vocabulary import Values
from proofs.source.functions import books, gather_claims
from proofs.source.jobs import MAX_FEATURES
from proofs.source.passes import runs, scheduling_claims
from proofs.source.passes.run_scenario import FEW_PASSES, MOST_PASSES, run_shapes
from proofs.source.passes.scheduling_scenario import lone_shapes, shapes
from proofs.theorems.groups import FOLDERS, GROUPS
from spec.claims.assumptions import ASSUMPTIONS
from spec.claims.healthy import HEALTHY
from spec.claims.register import PREDICATES
from spec.claims.texts import ALL_TEXTS, FUNCTION_CLAIMS, LOOP_CLAIMS
from spec.verdict import Verdict

EXPLORED = FOLDER / "explore.json"

LOOP_SCOPE = "random scenarios"

_NOT_ON_FUNCTIONS = "only whole passes show it"


def build_ledger(
    tests: Sequence[TestRecord] | None = None, explore_file: Path = EXPLORED
) -> Ledger:
    """The project's ledger.

    Every witness and every case of an assumption is run, on the reference.

    Args:
        tests: tests that were found to exist; ``None`` where nobody looked.
        explore_file: the record of the exhaustive search; until it exists none is asked for.
    """
    explored = recorded_exploration(explore_file)
    obligations = tuple(_obligations())
    faults = tuple(_fault(fault, obligations, explored) for fault in FAULTS)
    scopes = tuple(_scopes(explored))
    claims = tuple(_claim(claim_id, obligations, scopes, explored) for claim_id in ALL_TEXTS)
    return Ledger(
        claims=claims,
        assumptions=tuple(_assumptions(claims, obligations)),
        faults=faults,
        obligations=obligations,
        scopes=scopes,
        is_explored=explored is not None,
        tests=None if tests is None else tuple(tests),
    )


ROOM_OF_FOLDER: dict[str, Room] = {
    "guards": "rules",
    "runs": "relation",
    "progress": "progress",
}


def room_of(group: str) -> Room:
    """What the proofs of a group are about, which is the folder that its module stands in."""
    return ROOM_OF_FOLDER[FOLDERS[group]]


def _obligations() -> Iterator[ObligationRecord]:
    for group in GROUPS.values():
        for obligation in group:
            yield ObligationRecord(
                obligation.name,
                room_of(obligation.group),
                obligation.claim,
                obligation.sentence,
                claims_stated(obligation),
                tuple(_ablation(ablation) for ablation in obligation.ablations),
            )


def claims_stated(obligation: Obligation) -> tuple[str, ...]:
    """The claims whose predicates a theorem's statement calls, seen as it is built on its witness.

    Of a theorem on a transition the conclusion is looked at: each has invariants for premises.
    """
    claim_of = {f.__code__: claim for claim, stating in PREDICATES.items() for f in stating}
    statement = getattr(obligation.build, "keywords", {}).get("statement")
    stating = obligation.build if statement is None else statement.conclusion
    found: dict[str, None] = {}
    inside = 0

    def see(frame: FrameType, event: str, argument: object) -> None:
        nonlocal inside
        if frame.f_code is stating.__code__:
            inside += {"call": 1, "return": -1}.get(event, 0)
        if event == "call" and inside and frame.f_code in claim_of:
            found[claim_of[frame.f_code]] = None

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        obligation.build(Values(obligation.witness))
    finally:
        sys.setprofile(before)
    return tuple(found)


def _ablation(ablation: Ablation) -> AblationRecord:
    """Its name, and the assumptions among the premises that it drops; they bear their ids."""
    return AblationRecord(
        ablation.name, tuple(name for name in ablation.drops if name in ASSUMPTIONS)
    )


@dataclass(frozen=True)
class Explored:
    """A recorded exhaustive search.

    Attributes:
        scope: what was explored, by name and size.
        claims: claims that held in every state and step, and whose premise happened.
        faults: by switch, the claims that it breaks there.
        unseen: by switch that breaks none, why.
    """

    scope: str
    claims: tuple[str, ...]
    faults: Mapping[str, tuple[str, ...]]
    unseen: Mapping[str, str]

    def breaking(self, claim_id: str) -> tuple[str, ...]:
        """Switches that break a claim."""
        return tuple(name for name, claims in self.faults.items() if claim_id in claims)


def recorded_exploration(file: Path) -> Explored | None:
    """The record of the default scope; ``None`` where there is none yet."""
    if not file.exists():
        return None
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    held = tuple(claim for claim, verdict in data["claims"].items() if verdict == Verdict.HELD.name)
    faults = {name: tuple(found["claims"]) for name, found in data["faults"].items()}
    totals = data["totals"]
    scope = f"the {data['scope']} scope ({totals['cases']:,} cases, {totals['states']:,} states)"
    return Explored(scope, held, faults, data["unseen"])


def source_parts() -> dict[str, tuple[str, ...]]:
    """By part, the claims asked there; rules apart."""
    parts: dict[str, tuple[str, ...]] = {
        "V1": gather_claims.CLAIMS,
        "V2": gather_claims.CLAIMS,
        "free": ("freed-not-needed",),
        "free past the prompt": ("freed-not-needed",),
        "window": ("window-exact",),
        "row_range": ("row-range-exact",),
        "book": books.CLAIMS,
        "book of unlike contents": books.UNLIKE_CONTENTS_CLAIMS,
        "encoder_decoder_book": books.ENCODER_DECODER_CLAIMS,
    }
    asked: dict[str, dict[str, None]] = {}
    for shape in (*shapes(MAX_FEATURES), *lone_shapes(MAX_FEATURES)):
        claims = scheduling_claims.claims_of(shape)
        asked.setdefault(shape.part, {}).update(dict.fromkeys(claims))
        if "item-whole" in claims:
            asked.setdefault(f"{shape.part} ahead", {})["item-whole"] = None
    for run in (s for n in range(FEW_PASSES, MOST_PASSES + 1) for s in run_shapes(2, n, (0, 1, 2))):
        asked.setdefault(run.part, {}).update(dict.fromkeys(runs.claims_of(run)))
    return parts | {part: tuple(claims) for part, claims in asked.items()}


def _scopes(explored: Explored | None) -> Iterator[Scope]:
    for part, claims in CLAIMS_OF_PART.items():
        yield Scope("functions", part, claims)
    yield Scope("loop", LOOP_SCOPE, tuple(claim.id for claim in LOOP_CLAIMS.values()))
    for source_part, claims in source_parts().items():
        yield Scope("source", source_part, claims)
    if explored is not None:
        yield Scope("explorer", explored.scope, explored.claims)


def _names(scopes: Sequence[Scope], engine: str, claim_id: str) -> tuple[str, ...]:
    return tuple(s.name for s in scopes if s.engine == engine and claim_id in s.claims)


def _claim(
    claim_id: str,
    obligations: Sequence[ObligationRecord],
    scopes: Sequence[Scope],
    explored: Explored | None,
) -> ClaimRecord:
    text = ALL_TEXTS[claim_id]
    proofs = [obligation for obligation in obligations if obligation.claim == claim_id]
    return ClaimRecord(
        id=claim_id,
        kind=text.kind,
        sentence=text.sentence,
        why=text.why,
        not_expected=text.not_expected,
        healthy=HEALTHY.get(claim_id, ""),
        assumptions=text.assumptions,
        predicates=tuple(stating.__name__ for stating in PREDICATES.get(claim_id, ())),
        proofs=tuple(obligation.name for obligation in proofs),
        refuted=tuple(f"{o.name}/{a.name}" for o in proofs for a in o.ablations),
        why_no_proof=reasons.WHY_NO_PROOF.get(claim_id, ""),
        left_to_search=reasons.LEFT_TO_SEARCH.get(claim_id, ""),
        source=_names(scopes, "source", claim_id),
        why_no_source=reasons.WHY_NO_SOURCE.get(claim_id, ""),
        checked=tuple(_checked(claim_id, scopes)),
        why_not=reasons.WHY_NOT_AT_A_LEVEL.get(claim_id, ""),
        explored=_names(scopes, "explorer", claim_id),
        explorer_faults=() if explored is None else explored.breaking(claim_id),
        why_not_explored="" if explored is None else reasons.WHY_NOT_EXPLORED.get(claim_id, ""),
        why_no_explorer_fault=""
        if explored is None
        else reasons.WHY_NO_EXPLORER_FAULT.get(claim_id, ""),
        tests=TESTS.get(claim_id, ()),
    )


def _checked(claim_id: str, scopes: Sequence[Scope]) -> Iterator[Checked]:
    parts = _names(scopes, "functions", claim_id)
    for claim in FUNCTION_CLAIMS.values():
        if claim.id == claim_id and parts:
            yield Checked("functions", parts, claim.faults, run_function_witness(claim))
    loop = _names(scopes, "loop", claim_id)
    for in_loop in LOOP_CLAIMS.values():
        if in_loop.id == claim_id:
            yield Checked("loop", loop, in_loop.faults, run_loop_witness(in_loop))


def _fault(
    fault: Fault, obligations: Sequence[ObligationRecord], explored: Explored | None
) -> FaultRecord:
    bearing_its_name = tuple(
        f"{obligation.name}/{ablation.name}"
        for obligation in obligations
        for ablation in obligation.ablations
        if ablation.name == fault.name
    )
    ablations = bearing_its_name or reasons.ABLATIONS_OF_FAULTS.get(fault.name, ())
    return FaultRecord(
        name=fault.name,
        functions=fault.breaks,
        why_no_functions="" if fault.breaks else _NOT_ON_FUNCTIONS,
        loop=fault.breaks_in_loop,
        why_no_loop=fault.not_in_loop,
        may_also_break=fault.may_also_break,
        explorer=() if explored is None else explored.faults.get(fault.name, ()),
        why_no_explorer="" if explored is None else explored.unseen.get(fault.name, ""),
        ablations=ablations,
        why_no_ablation=reasons.WHY_NO_ABLATION.get(fault.name, ""),
    )


def _assumptions(
    claims: Sequence[ClaimRecord], obligations: Sequence[ObligationRecord]
) -> Iterator[AssumptionRecord]:
    """One record for each; what is seen on functions comes first."""
    for assumption in ASSUMPTIONS.values():
        breaking = (assumption.on_functions, assumption.on_runs)
        traces = (break_assumption(assumption), break_loop_assumption(assumption))
        name = assumption.id
        yield AssumptionRecord(
            id=name,
            sentence=assumption.sentence,
            without=assumption.without,
            claims=tuple(claim.id for claim in claims if name in claim.assumptions),
            ablations=tuple(
                f"{obligation.name}/{ablation.name}"
                for obligation in obligations
                for ablation in obligation.ablations
                if name in ablation.drops
            ),
            breaks=tuple(shown.claim for shown in breaking if shown is not None),
            traces=tuple(trace for trace in traces if trace is not None),
        )
