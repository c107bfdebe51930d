"""Obligations on the relation: a transition keeps an invariant, or shows a claim.

Each names exactly what its proof uses: invariants of the state before, and guards of the
transition. A guard that is used is also an ablation: without it, in a state in which *every*
invariant holds, the conclusion fails. Known faults are ablations too: the same transition with the
guard or the effect that the fault changes, named by its switch of :mod:`impl.faults.switches`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from proofs.smt.obligation import Ablation, Formula, Obligation
from proofs.smt.vocabulary import Vocabulary
from proofs.theorems.runs.variables import DECODER_ONLY, SIZES, World, sizes_not_negative
from proofs.theorems.runs.witnesses import WITNESSES
from spec.algebra import BoolTerm, and_

Told: TypeAlias = Mapping[str, Any]
"""What a transition is told, by name."""

Extra: TypeAlias = Callable[[Any, Any, Told], BoolTerm]
"""A premise that is neither an invariant nor a guard."""

Conclusion: TypeAlias = Callable[[Any, Any, Any, Told], BoolTerm]
"""What a transition shows, from the state before, the move, and what it is told."""

Twist: TypeAlias = Callable[[Vocabulary, Any, Any, Any], Any]
"""A fault that changes what a transition does."""


@dataclass(frozen=True)
class Fault:
    """A known fault, as the relation sees it.

    Attributes:
        name: a switch of :mod:`impl.faults.switches`, or of a fault that releases have.
        guards: the guards with the fault; ``None`` for those of a correct engine.
        twist: what it does to the effect of the transition.
    """

    name: str
    guards: Any = None
    twist: Twist | None = None


@dataclass(frozen=True)
class Statement:
    """What is to be shown of one transition.

    Attributes:
        transition: its name.
        using: names of the invariants before and of the guards that the proof uses.
        conclusion: what follows.
        extra: further premises, by name.
        world: the relation that it is about.
    """

    transition: str
    using: tuple[str, ...]
    conclusion: Conclusion
    extra: Mapping[str, Extra] = field(default_factory=dict)
    world: World = DECODER_ONLY


def build(
    v: Vocabulary,
    statement: Statement,
    fault: Fault | None = None,
    *,
    is_reachable: bool = True,
) -> Formula:
    """The formula of a statement.

    Args:
        v: the vocabulary.
        statement: what is to be shown.
        fault: a fault that the engine has.
        is_reachable: whether a counterexample has to obey every invariant before, and to count
            nothing below 0.
    """
    world = statement.world
    scope, before = world.a_scope(v), world.a_state(v)
    told = world.told(v, statement.transition)
    guards = world.guards if fault is None or fault.guards is None else fault.guards
    move = world.transitions[statement.transition].move(scope, before, guards, **told)
    if fault is not None and fault.twist is not None:
        move = fault.twist(v, scope, before, move)
    named = {name: invariant(scope, before) for name, invariant in world.invariants.items()}
    named |= move.guards | {SIZES: sizes_not_negative(scope)}
    premises = {name: named[name] for name in statement.using}
    premises |= {name: extra(scope, before, told) for name, extra in statement.extra.items()}
    realistic = world.plain(scope)
    if is_reachable:
        reached = world.all_invariants(scope, before)
        realistic = and_(realistic, world.plain_state(before), reached)
    return Formula(premises, statement.conclusion(scope, before, move, told), realistic)


def obligation(
    *,
    claim: str,
    group: str,
    short_name: str,
    sentence: str,
    statement: Statement,
    faults: tuple[Fault, ...] = (),
    drops: tuple[str, ...] | None = None,
    witness: str = "",
) -> Obligation:
    """An obligation on a transition.

    Args:
        claim: the claim that it supports.
        group: its group.
        short_name: its name in the group.
        sentence: what is shown.
        statement: the same, as a formula.
        faults: known faults that must refute it.
        drops: premises that are dropped as ablations; guards and assumptions among them when not
            given.
        witness: the witness, where that of the transition will not do.
    """
    world, invariants = statement.world, statement.world.invariants
    guards = [name for name in statement.using if name not in invariants and name != SIZES]
    if drops is None:
        drops = (*guards, *statement.extra)
    anyhow = partial(build, statement=statement, is_reachable=False)
    ablations = [
        Ablation(name, drops=(name,), build=anyhow if name in invariants else None)
        for name in drops
    ]
    ablations += [
        Ablation(one.name, build=partial(build, statement=statement, fault=one)) for one in faults
    ]
    if not ablations:
        used = [name for name in statement.using if name in invariants]
        if used:
            ablations = [Ablation(used[0], drops=(used[0],), build=anyhow)]
        else:
            idle = partial(build, statement=statement, fault=_NOTHING, is_reachable=False)
            ablations = [Ablation("nothing-happens", build=idle)]
    return Obligation(
        claim=claim,
        group=group,
        short_name=short_name,
        sentence=sentence,
        build=partial(build, statement=statement),
        witness=world.seen(witness or WITNESSES[type(world.scope)][statement.transition]),
        ablations=tuple(ablations),
    )


def _does_nothing(v: Vocabulary, scope: Any, before: Any, move: Any) -> Any:
    return replace(move, after=before)


_NOTHING = Fault("nothing-happens", twist=_does_nothing)


def kept_of(
    group: str,
    table: Mapping[str, Mapping[str, str]],
    claims: Mapping[str, str],
    faults: Mapping[tuple[str, str], tuple[Fault, ...]],
    world: World = DECODER_ONLY,
) -> tuple[Obligation, ...]:
    """The obligations that transitions keep invariants.

    Args:
        group: the group.
        table: for each invariant and transition the names of invariants and guards that the proof
            uses, separated by blanks. A transition that is not named leaves everything as it is
            that the invariant looks at (a test compares the terms).
        claims: the claim that each invariant supports.
        faults: known faults that must refute the obligation, by invariant and transition.
        world: the relation.
    """
    return tuple(
        obligation(
            claim=claims[invariant],
            group=group,
            short_name=f"{invariant}.{transition}",
            sentence=f"`{transition}` keeps the invariant: {_first_line(world, invariant)}",
            statement=Statement(
                transition,
                tuple(using.split()),
                _holds_after(world, invariant),
                world=world,
            ),
            faults=faults.get((invariant, transition), ()),
        )
        for invariant, uses in table.items()
        for transition, using in uses.items()
    )


def _holds_after(world: World, invariant: str) -> Conclusion:
    holds = world.invariants[invariant]
    return lambda scope, before, move, told: holds(scope, move.after)


def _first_line(world: World, invariant: str) -> str:
    text = (world.invariants[invariant].__doc__ or "").splitlines()[0].rstrip(".")
    return text[0].lower() + text[1:]
