"""What is missing in a ledger: every link that is cut.

A link is compared only with what is written independently of it: the faults that a claim names with
the switches' own lists and with what the exhaustive search recorded, the claim that a proof names
with the predicates that its formula calls, and names with what bears them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import get_args

from proofs.ledger.records import (
    LEVELS,
    ROOMS,
    AssumptionRecord,
    Checked,
    ClaimRecord,
    FaultRecord,
    Ledger,
    Level,
    ObligationRecord,
)
from spec.claims.texts import Kind


@dataclass(frozen=True)
class Gap:
    """Something that is missing.

    Attributes:
        subject: the claim, assumption, fault or proof that it is missing from.
        text: what is missing, and what to do where that is not plain.
    """

    subject: str
    text: str


class _Ends:
    """What links lead to: what there is, from where it is defined."""

    def __init__(self, ledger: Ledger) -> None:
        self.claims = {claim.id for claim in ledger.claims}
        self.assumptions = {assumption.id for assumption in ledger.assumptions}
        self.ablations = {
            f"{obligation.name}/{ablation.name}": obligation.claim
            for obligation in ledger.obligations
            for ablation in obligation.ablations
        }
        self.steps = {obligation.name for obligation in ledger.obligations if obligation.is_step}
        self.stated = {
            claim
            for obligation in ledger.obligations
            for claim in obligation.states
            if claim == obligation.claim
        }
        self.faults: dict[Level, set[tuple[str, str]]] = {
            "functions": {(claim, f.name) for f in ledger.faults for claim in f.functions},
            "loop": {(claim, f.name) for f in ledger.faults for claim in f.loop},
        }
        self.tests = None if ledger.tests is None else {(t.claim, t.id) for t in ledger.tests}


def gaps(ledger: Ledger) -> tuple[Gap, ...]:
    """Everything that is missing in a ledger; nothing where every claim is closed."""
    ends = _Ends(ledger)
    found = [
        *_repetitions("claim", (claim.id for claim in ledger.claims)),
        *_repetitions("assumption", (assumption.id for assumption in ledger.assumptions)),
        *_repetitions("fault", (fault.name for fault in ledger.faults)),
        *_repetitions("proof", (obligation.name for obligation in ledger.obligations)),
    ]
    for claim in ledger.claims:
        found += [Gap(claim.id, text) for text in _claim(claim, ledger, ends)]
    for assumption in ledger.assumptions:
        found += [Gap(assumption.id, text) for text in _assumption(assumption, ends)]
    for fault in ledger.faults:
        found += [Gap(fault.name, text) for text in _fault(fault, ledger, ends)]
    for obligation in ledger.obligations:
        found += [Gap(obligation.name, text) for text in _obligation(obligation, ends)]
    found += _unnamed_faults(ledger, ends)
    for scope in ledger.scopes:
        if not scope.name:
            found.append(Gap(scope.engine, "a scope has no name"))
    return tuple(found)


def _repetitions(what: str, names: Iterable[str]) -> Iterator[Gap]:
    seen: set[str] = set()
    for name in names:
        if name in seen or not name:
            yield Gap(name, f"there are two records of this {what}, or it has no name")
        seen.add(name)


def _claim(claim: ClaimRecord, ledger: Ledger, ends: _Ends) -> Iterator[str]:
    yield from _empty(sentence=claim.sentence, why=claim.why, not_expected=claim.not_expected)
    if claim.kind not in get_args(Kind):
        yield "it has no kind"
    yield from _either("proof", claim.proofs, claim.why_no_proof)
    if claim.left_to_search and not claim.proofs:
        yield "something is left to search beside proofs that are not there"
    if claim.predicates and claim.proofs and claim.id not in ends.stated:
        yield f"no proof that names it states it: none calls {', '.join(claim.predicates)}"
    yield from _either("part of the source", claim.source, claim.why_no_source)
    yield from _either("missing level", _missing_levels(claim), claim.why_not, both=True)
    for checked in claim.checked:
        yield from _checked(checked)
        for name in checked.faults:
            if (claim.id, name) not in ends.faults[checked.level]:
                yield f"the fault {name} does not break it at the level of {checked.level}"
    if claim.at("loop") is not None and not claim.healthy:
        yield "nobody says which healthy engine could break it"
    if not claim.checked:
        yield "nothing searches for its violation"
    if ledger.is_explored:
        yield from _either("explored scope", claim.explored, claim.why_not_explored)
        if claim.explored:
            faults, reason = claim.explorer_faults, claim.why_no_explorer_fault
            yield from _either("fault of the explorer", faults, reason)
    if claim.proofs and not claim.refuted:
        yield "its proofs have nothing that must be refuted"
    if not claim.tests:
        yield "no test is about it"
    for name in claim.assumptions:
        if name not in ends.assumptions:
            yield f"the assumption {name} is not there"
    for name in claim.tests:
        if ends.tests is not None and (claim.id, name) not in ends.tests:
            yield f"the test {name} is not there, or is not about it"


def _missing_levels(claim: ClaimRecord) -> tuple[str, ...]:
    return tuple(level for level in LEVELS if claim.at(level) is None)


def _empty(**texts: str) -> Iterator[str]:
    for name, text in texts.items():
        if not text:
            yield f"{name} is empty"


def _either(what: str, links: tuple[str, ...], reason: str, *, both: bool = False) -> Iterator[str]:
    """Links or the reason why there are none; with ``both`` a reason for what is linked."""
    if both:
        if bool(links) != bool(reason):
            yield f"{what}: {', '.join(links) or 'none'}, reason: {reason or 'none'}"
    elif not links and not reason:
        yield f"{what}: none, and no reason why not"
    elif links and reason:
        yield f"{what}: {links[0]}, and a reason why there is none; drop the reason"


def _checked(checked: Checked) -> Iterator[str]:
    level, witness = checked.level, checked.witness
    if not checked.scopes:
        yield f"nothing is searched at the level of {level}"
    if not checked.faults:
        yield f"no fault breaks it at the level of {level}"
    if witness is None:
        yield f"it has no witness at the level of {level}"
        return
    if not witness.words:
        yield f"its witness at the level of {level} has no words"
    if witness.premises < 1:
        yield f"its premise was not seen in its witness at the level of {level}"
    for violated in witness.violated:
        yield f"a correct run of its witness at the level of {level} violates {violated}"


def _assumption(assumption: AssumptionRecord, ends: _Ends) -> Iterator[str]:
    yield from _empty(sentence=assumption.sentence, without=assumption.without)
    if not assumption.claims and not assumption.ablations:
        yield "no claim and no proof rests on it"
    if not assumption.ablations and not assumption.traces:
        yield "nothing shows what breaks without it"
    of_proofs = {ends.ablations[name] for name in assumption.ablations if name in ends.ablations}
    if tuple(trace.claim for trace in assumption.traces) != assumption.breaks:
        yield f"what breaks without it is {assumption.breaks}, and its cases are of others"
    for trace in assumption.traces:
        yield from _empty(words=trace.words)
        if trace.claim not in of_proofs.union(assumption.claims):
            yield f"it is shown by {trace.claim or 'nothing'}, which does not rest on it"
        if not trace.shown:
            yield f"its case did not show what is said of {trace.claim}"


def _fault(fault: FaultRecord, ledger: Ledger, ends: _Ends) -> Iterator[str]:
    yield from _either("claim broken on functions", fault.functions, fault.why_no_functions)
    yield from _either("claim broken in the loop", fault.loop, fault.why_no_loop)
    yield from _either("ablation of a proof", fault.ablations, fault.why_no_ablation)
    if ledger.is_explored:
        yield from _either("claim broken in the explorer", fault.explorer, fault.why_no_explorer)
        allowed = {*fault.loop, *fault.may_also_break}
        judged = {claim.id for claim in ledger.claims if claim.explored}
        for claim in sorted(set(fault.explorer) - allowed):
            yield f"the explorer sees it break {claim}, and search must not"
        if fault.explorer:
            for claim in sorted(judged.intersection(fault.loop).difference(fault.explorer)):
                yield f"search sees it break {claim}, and the explorer does not"
    broken = {*fault.functions, *fault.loop, *fault.explorer}
    if not broken:
        yield "it shows in no engine"
    seen = broken.union(fault.may_also_break)
    claims_of_proofs = {ends.ablations.get(name, "") for name in fault.ablations}
    if fault.ablations and not claims_of_proofs & seen:
        yield "no proof sees it break a claim that search sees it break"
    for name in fault.ablations:
        if name not in ends.ablations:
            yield f"the ablation {name} is not there"
            continue
        claim, is_step = ends.ablations[name], name.partition("/")[0] in ends.steps
        if not is_step and claim not in seen:
            yield f"the ablation {name} breaks {claim}, which the switch does not"


def _obligation(obligation: ObligationRecord, ends: _Ends) -> Iterator[str]:
    yield from _empty(sentence=obligation.sentence)
    if obligation.room not in ROOMS:
        yield "it stands in no room"
    if obligation.claim not in ends.claims:
        yield f"it names the claim {obligation.claim or 'nothing'}, which is not there"
    if not obligation.ablations:
        yield "nothing must be refuted"
    for ablation in obligation.ablations:
        yield from _empty(ablation=ablation.name)
        for drop in ablation.drops:
            if drop not in ends.assumptions:
                yield f"its ablation {ablation.name} drops {drop or 'nothing'}, which is not there"


def _unnamed_faults(ledger: Ledger, ends: _Ends) -> Iterator[Gap]:
    """Switches that break a claim which does not name them; the claims are written elsewhere."""
    for level in LEVELS:
        named = {
            (claim.id, name)
            for claim in ledger.claims
            if (checked := claim.at(level)) is not None
            for name in checked.faults
        }
        for subject, name in sorted(ends.faults[level] - named):
            yield Gap(subject, f"its record does not name the fault of {level} {name}")
