"""The unbounded proofs are complete, about runs that happen, and name what search names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import pytest

from impl.faults.switches import BY_NAME
from impl.targets.runs import ReferenceLoop
from proofs.run.record import record
from proofs.smt.obligation import Obligation, evaluate, prove
from proofs.smt.solvers import Z3, build_formula
from proofs.smt.vocabulary import Value, Values, Vocabulary
from proofs.theorems.runs import faults, items, references, residency, slots
from proofs.theorems.runs.kept import Fault, Statement, build
from proofs.theorems.runs.variables import CROSS_ATTENTION, DECODER_ONLY, World
from proofs.theorems.runs.witnesses import WITNESSES
from spec.relation.cross_attention import ItemScope
from spec.relation.invariants import views_agree
from spec.relation.runs.outside import AnyTaken, project
from spec.relation.state import Scope
from spec.verdict import Verdict
from tests.support.relation_runs import fixed_scenarios

GROUPS = (slots, residency, references, items)
ALL: tuple[Obligation, ...] = tuple(o for group in GROUPS for o in group.GROUP.obligations)
WORLDS = {"decoder-only": DECODER_ONLY, "encoder-decoder": CROSS_ATTENTION}
KEPT = {
    ("encoder-decoder" if o.group == "items" else "decoder-only", invariant, transition)
    for o in ALL
    for invariant, _, transition in [o.short_name.partition(".")]
}
PAIRS = [
    (name, invariant, transition)
    for name, world in WORLDS.items()
    for invariant in world.invariants
    for transition in world.transitions
]

FAULTS = {
    theorem.name: theorem
    for module in (faults, items)
    for theorem in vars(module).values()
    if isinstance(theorem, Fault)
}

ONLY_HERE = {
    "victim-of-the-same-pass-not-encoded": "found in releases, without a switch",
    "evicts-the-referenced": "the reference has no such switch",
    "drafts-not-counted": "an assumption where free is looked at alone",
    "preempted-runs-on": "shows that a preemption is told apart",
}
"""Faults of the relation without a switch, and why they are there."""

MOST = 12
"""States of each transition on which theorems are evaluated."""


@cache
def taken_in_runs() -> dict[tuple[type, str], list[AnyTaken]]:
    """Transitions that fixed runs of the reference take, some of each."""
    found: dict[tuple[type, str], list[AnyTaken]] = defaultdict(list)
    for scenario in fixed_scenarios():
        for _, _, _, _, _, taken in project(record(ReferenceLoop(), scenario, "V2").trace):
            for move in taken:
                of_kind = found[type(move.scope), move.transition]
                if move not in of_kind:
                    of_kind.append(move)
    return found


@pytest.mark.parametrize("pair", PAIRS, ids="/".join)
def test_no_pair_is_left_out(pair: tuple[str, str, str]) -> None:
    """Wrong: a transition that breaks an invariant, and nobody proved anything of it."""
    name, invariant, transition = pair
    world = WORLDS[name]

    def is_untouched(v: Vocabulary) -> bool:
        scope, before = world.a_scope(v), world.a_state(v)
        move = world.transitions[transition].move
        after = move(scope, before, world.guards, **world.arguments(v, transition)).after
        first, second = (world.invariants[invariant](scope, state) for state in (before, after))
        return not isinstance(second, bool) and bool(first.sexpr() == second.sexpr())

    assert build_formula(is_untouched, Z3().vocabulary()) != (pair in KEPT)


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_witnesses_are_states_that_the_proofs_reckon_with(world: World) -> None:
    """Wrong: an obligation about a state that no run comes to."""
    witnesses = WITNESSES[type(world.scope)]
    assert witnesses.keys() == world.transitions.keys()
    for name, witness in witnesses.items():
        values = Values(world.completed(witness))
        scope, before = world.a_scope(values), world.a_state(values)
        assert world.plain(scope), name
        assert world.plain_state(before), name
        for invariant, holds in world.invariants.items():
            assert holds(scope, before), (name, invariant)
        move = world.transitions[name].move(
            scope, before, world.guards, **world.arguments(values, name)
        )
        assert all(move.guards.values()), name


def data_of_runs(obligation: Obligation) -> Iterator[dict[str, Value]]:
    """What runs have to say of a theorem: the transitions that they take, or their constants."""
    statement = getattr(obligation.build, "keywords", {}).get("statement")
    if isinstance(statement, Statement):
        for taken in taken_in_runs()[type(statement.world.scope), statement.transition]:
            data: dict[str, Value] = {
                **taken.scope._asdict(),
                **taken.before._asdict(),
                **taken.arguments,
            }
            yield data
            if statement.transition == "rewind":
                # A failed load takes back the whole pass, so that no run falls by drafts only.
                yield {**data, "left": taken.before.lowest_progress}
        return
    # A theorem about the first state of a run is about its constants only.
    kind = ItemScope if obligation.group == "items" else Scope
    for scope, transitions in taken_in_runs().items():
        if scope[0] is kind:
            yield from (taken.scope._asdict() for taken in transitions)


def assert_holds_in_runs(obligation: Obligation, conclusion: bool = True) -> None:
    """The premises happen in runs, and where they do the conclusion is as given."""
    met = 0
    for data in data_of_runs(obligation):
        premises, concluded = evaluate(obligation.build, data, realistic=False)
        assert bool(concluded) is conclusion or not premises, data
        met += premises
        if met == MOST:
            return
    assert met, "its premises happen in no run"


@pytest.mark.parametrize("name", [o.name for o in ALL])
def test_theorems_hold_in_runs(name: str) -> None:
    """Wrong: a theorem about terms that fails on the states of a run would be about another.

    And a case that cannot fail shows nothing: each is red where the opposite is said.
    """
    (obligation,) = (o for o in ALL if o.name == name)
    assert_holds_in_runs(obligation)
    with pytest.raises(AssertionError):
        assert_holds_in_runs(obligation, conclusion=False)


@cache
def claims_refuted() -> dict[str, set[str]]:
    """For each fault the claims of the obligations that it refutes, as the groups declare it."""
    claims: dict[str, set[str]] = defaultdict(set)
    for obligation in ALL:
        for ablation in obligation.ablations:
            if ablation.name in FAULTS:
                claims[ablation.name].add(obligation.claim)
    return claims


@pytest.mark.parametrize("name", FAULTS)
def test_proof_names_the_claims_that_search_names(name: str) -> None:
    """Wrong: proof and search disagree on what a fault breaks."""
    claims = claims_refuted()[name]
    assert claims
    if name in ONLY_HERE:
        assert name not in BY_NAME
        return
    switch = BY_NAME[name]
    searched = {*switch.breaks, *switch.breaks_in_loop, *switch.may_also_break}
    assert claims <= searched
    assert claims & {*switch.breaks, *switch.breaks_in_loop}


def test_every_claim_that_a_fault_must_break_here_is_refuted() -> None:
    """Wrong: a claim with an unbounded proof that stands although its fault is in the engine."""
    proved = {obligation.claim for obligation in ALL}
    missing = {
        (name, claim)
        for name in FAULTS
        if name in BY_NAME
        for claim in BY_NAME[name].breaks_in_loop
        if claim in proved and claim not in claims_refuted()[name]
    }
    assert missing == CANNOT_SEE.keys()


CANNOT_SEE = {
    ("encoder-decoder-credit", "worker-bounded"): "follows from slots-conserved, which it refutes",
    ("notices-lost", "worker-bounded"): "follows from views-agree, which it refutes",
    ("own-size-free", "fresh-tensor"): "what a hash stands for is hash-is-content itself",
    ("resumed-without-payload", "target-resident"): "that what is chosen is encoded is a guard",
    ("resumed-without-payload", "views-agree"): "that what is chosen is encoded is a guard",
}
"""Claims that a fault must break and that the relation does not see broken, and why."""


def test_a_fault_in_a_guard_that_nobody_uses_refutes_nothing() -> None:
    """Wrong: obligations that any change to the engine refutes say nothing about a fault."""
    statement = Statement(
        "evict",
        ("views-agree",),
        lambda scope, s, move, arguments: views_agree(scope, move.after),
    )
    untouched = Obligation(
        claim="views-agree",
        group="test",
        short_name="untouched",
        sentence="an eviction does not look at windows",
        build=lambda v: build(v, statement, faults.NO_SHIFT),
        witness=DECODER_ONLY.completed(WITNESSES[Scope]["evict"]),
        ablations=(),
    )
    assert prove(untouched).answers == {"z3": "unsat", "cvc5": "unsat"}
    assert prove(untouched).verdict is Verdict.ERROR
