"""What is missing in a ledger: every link that is cut, from either end."""

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
from spec.claims.on_functions import Kind


@dataclass(frozen=True)
class Gap:
    """Something that is missing.

    Attributes:
        subject: the claim, assumption, fault or proof that it is missing from.
        text: what is missing, and what to do where that is not plain.
    """

    subject: str
    text: str


class _Sides:
    """Both sides of every link, as sets of pairs with the claim first."""

    def __init__(self, ledger: Ledger) -> None:
        claims, faults = ledger.claims, ledger.faults
        switches = {fault.name for fault in faults}
        self.claims = {claim.id for claim in claims}
        self.assumptions = {assumption.id for assumption in ledger.assumptions}
        self.ablations = {
            f"{obligation.name}/{ablation.name}": obligation.claim
            for obligation in ledger.obligations
            for ablation in obligation.ablations
        }
        self.steps = {obligation.name for obligation in ledger.obligations if obligation.is_step}
        self.named_after_faults = {
            (ablation.name, f"{obligation.name}/{ablation.name}")
            for obligation in ledger.obligations
            for ablation in obligation.ablations
            if ablation.name in switches
        }
        self.proofs = {(o.claim, o.name) for o in ledger.obligations}
        self.refuted = {(claim, name) for name, claim in self.ablations.items()}
        self.dropped = {
            (drop, f"{obligation.name}/{ablation.name}")
            for obligation in ledger.obligations
            for ablation in obligation.ablations
            for drop in ablation.drops
        }
        self.scopes = {
            engine: {
                (claim, scope.name)
                for scope in ledger.scopes
                if scope.engine == engine
                for claim in scope.claims
            }
            for engine in ("functions", "loop", "source", "explorer")
        }
        self.faults: dict[Level, set[tuple[str, str]]] = {
            "functions": {(claim, f.name) for f in faults for claim in f.functions},
            "loop": {(claim, f.name) for f in faults for claim in f.loop},
        }
        self.explorer_faults = {(claim, f.name) for f in faults for claim in f.explorer}
        self.resting = {(claim, a.id) for a in ledger.assumptions for claim in a.claims}
        self.tests = None if ledger.tests is None else {(t.claim, t.id) for t in ledger.tests}


def gaps(ledger: Ledger) -> tuple[Gap, ...]:
    """Everything that is missing in a ledger; nothing where every claim is closed."""
    sides = _Sides(ledger)
    found = [
        *_repetitions("claim", (claim.id for claim in ledger.claims)),
        *_repetitions("assumption", (assumption.id for assumption in ledger.assumptions)),
        *_repetitions("fault", (fault.name for fault in ledger.faults)),
        *_repetitions("proof", (obligation.name for obligation in ledger.obligations)),
    ]
    for claim in ledger.claims:
        found += [Gap(claim.id, text) for text in _claim(claim, ledger, sides)]
    for assumption in ledger.assumptions:
        found += [Gap(assumption.id, text) for text in _assumption(assumption, sides)]
    for fault in ledger.faults:
        found += [Gap(fault.name, text) for text in _fault(fault, ledger, sides)]
    for obligation in ledger.obligations:
        found += [Gap(obligation.name, text) for text in _obligation(obligation, sides)]
    found += _other_ends(ledger, sides)
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


def _claim(claim: ClaimRecord, ledger: Ledger, sides: _Sides) -> Iterator[str]:
    yield from _empty(sentence=claim.sentence, why=claim.why, not_expected=claim.not_expected)
    if claim.kind not in get_args(Kind):
        yield "it has no kind"
    yield from _either("proof", claim.proofs, claim.why_no_proof)
    if claim.left_to_search and not claim.proofs:
        yield "something is left to search beside proofs that are not there"
    yield from _either("part of the source", claim.source, claim.why_no_source)
    yield from _either("missing level", _missing_levels(claim), claim.why_not, both=True)
    for checked in claim.checked:
        yield from _checked(checked)
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
    ends = [
        ("assumption", claim.assumptions, sides.resting),
        ("proof", claim.proofs, sides.proofs),
        ("ablation", claim.refuted, sides.refuted),
        ("part of the source", claim.source, sides.scopes["source"]),
        ("explored scope", claim.explored, sides.scopes["explorer"]),
        ("fault of the explorer", claim.explorer_faults, sides.explorer_faults),
    ]
    for checked in claim.checked:
        ends.append((f"scope of {checked.level}", checked.scopes, sides.scopes[checked.level]))
        ends.append((f"fault of {checked.level}", checked.faults, sides.faults[checked.level]))
    if sides.tests is not None:
        ends.append(("test", claim.tests, sides.tests))
    for what, names, pairs in ends:
        for name in names:
            if (claim.id, name) not in pairs:
                yield f"the {what} {name} is not there, or is not about it"


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


def _assumption(assumption: AssumptionRecord, sides: _Sides) -> Iterator[str]:
    yield from _empty(sentence=assumption.sentence, without=assumption.without)
    if not assumption.claims and not assumption.ablations:
        yield "no claim and no proof rests on it"
    if not assumption.ablations and not assumption.traces:
        yield "nothing shows what breaks without it"
    for name in assumption.ablations:
        if (assumption.id, name) not in sides.dropped:
            yield f"the ablation {name} is not there, or does not drop it"
    of_proofs = {sides.ablations[name] for name in assumption.ablations if name in sides.ablations}
    if tuple(trace.claim for trace in assumption.traces) != assumption.breaks:
        yield f"what breaks without it is {assumption.breaks}, and its cases are of others"
    for trace in assumption.traces:
        yield from _empty(words=trace.words)
        if trace.claim not in of_proofs.union(assumption.claims):
            yield f"it is shown by {trace.claim or 'nothing'}, which does not rest on it"
        if not trace.shown:
            yield f"its case did not show what is said of {trace.claim}"


def _fault(fault: FaultRecord, ledger: Ledger, sides: _Sides) -> Iterator[str]:
    yield from _either("claim broken on functions", fault.functions, fault.why_no_functions)
    yield from _either("claim broken in the loop", fault.loop, fault.why_no_loop)
    yield from _either("ablation of a proof", fault.ablations, fault.why_no_ablation)
    if ledger.is_explored:
        yield from _either("claim broken in the explorer", fault.explorer, fault.why_no_explorer)
        allowed = {*fault.loop, *fault.may_also_break}
        judged = {claim for claim, _ in sides.scopes["explorer"]}
        for claim in sorted(set(fault.explorer) - allowed):
            yield f"the explorer sees it break {claim}, and search must not"
        if fault.explorer:
            for claim in sorted(judged.intersection(fault.loop).difference(fault.explorer)):
                yield f"search sees it break {claim}, and the explorer does not"
    broken = {*fault.functions, *fault.loop, *fault.explorer}
    if not broken:
        yield "it shows in no engine"
    seen = broken.union(fault.may_also_break)
    claims_of_proofs = {sides.ablations.get(name, "") for name in fault.ablations}
    if fault.ablations and not claims_of_proofs & seen:
        yield "no proof sees it break a claim that search sees it break"
    for name in fault.ablations:
        if name not in sides.ablations:
            yield f"the ablation {name} is not there"
            continue
        claim, is_step = sides.ablations[name], name.partition("/")[0] in sides.steps
        if not is_step and claim not in seen:
            yield f"the ablation {name} breaks {claim}, which the switch does not"


def _obligation(obligation: ObligationRecord, sides: _Sides) -> Iterator[str]:
    yield from _empty(sentence=obligation.sentence)
    if obligation.room not in ROOMS:
        yield "it stands in no room"
    if obligation.claim not in sides.claims:
        yield f"it names the claim {obligation.claim or 'nothing'}, which is not there"
    if not obligation.ablations:
        yield "nothing must be refuted"
    for ablation in obligation.ablations:
        yield from _empty(ablation=ablation.name)
        for drop in ablation.drops:
            if drop not in sides.assumptions:
                yield f"its ablation {ablation.name} drops {drop or 'nothing'}, which is not there"


def _other_ends(ledger: Ledger, sides: _Sides) -> Iterator[Gap]:
    """Links that what they lead to has, and the claim or assumption has not."""
    claims = ledger.claims
    told: list[tuple[str, set[tuple[str, str]], set[tuple[str, str]]]] = [
        ("assumption", sides.resting, {(c.id, name) for c in claims for name in c.assumptions}),
        ("proof", sides.proofs, {(c.id, name) for c in claims for name in c.proofs}),
        ("ablation", sides.refuted, {(c.id, name) for c in claims for name in c.refuted}),
        (
            "dropping ablation",
            sides.dropped,
            {(a.id, name) for a in ledger.assumptions for name in a.ablations},
        ),
        (
            "ablation that bears its name",
            sides.named_after_faults,
            {(f.name, name) for f in ledger.faults for name in f.ablations},
        ),
        ("source part", sides.scopes["source"], {(c.id, n) for c in claims for n in c.source}),
        (
            "explored scope",
            sides.scopes["explorer"],
            {(c.id, n) for c in claims for n in c.explored},
        ),
        (
            "fault of the explorer",
            sides.explorer_faults,
            {(c.id, name) for c in claims for name in c.explorer_faults},
        ),
    ]
    for level in LEVELS:
        checked = [(c.id, at) for c in claims if (at := c.at(level)) is not None]
        scopes = {(claim, name) for claim, at in checked for name in at.scopes}
        faults = {(claim, name) for claim, at in checked for name in at.faults}
        told.append((f"scope of {level}", sides.scopes[level], scopes))
        told.append((f"fault of {level}", sides.faults[level], faults))
    if sides.tests is not None:
        told.append(("test", sides.tests, {(c.id, name) for c in claims for name in c.tests}))
    for what, there, linked in told:
        for subject, name in sorted(there - linked):
            yield Gap(subject, f"its record does not name the {what} {name}")
