"""Obligations on the relation: a transition keeps an invariant, or shows a claim.

Each names exactly what its proof uses: invariants of the state before, and guards of the
transition. A guard that is used is also an ablation: without it, in a state in which *every*
invariant holds, the conclusion fails. Known faults are ablations too: the same transition with the
guard or the effect that the fault changes, named by its switch of :mod:`impl.faults.switches`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, TypeVar

from proofs.smt.obligation import Ablation, Formula, Obligation
from proofs.smt.theorem import Group, name_of
from proofs.smt.vocabulary import Value, Vocabulary
from proofs.theorems.runs.variables import DECODER_ONLY, SIZES, World, sizes_not_negative
from proofs.theorems.runs.witnesses import WITNESSES
from spec.algebra import BoolTerm, and_

Arguments: TypeAlias = Mapping[str, Any]
"""What a transition is given beside scope, state and guards, by name."""

Extra: TypeAlias = Callable[[Any, Any, Arguments], BoolTerm]
"""A premise that is neither an invariant nor a guard."""

Conclusion: TypeAlias = Callable[[Any, Any, Any, Arguments], BoolTerm]
"""What a transition shows, from the state before, the move, and its arguments."""

Shown = TypeVar("Shown", bound=Conclusion)

Invariant: TypeAlias = Callable[[Any, Any], BoolTerm]
"""An invariant of a relation, of its constants and a state."""

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
        using: names of the invariants before and of the guards that the proof uses.
        extra: further premises, by name.
    """

    transition: str
    using: tuple[str, ...]
    conclusion: Conclusion
    extra: Mapping[str, Extra] = field(default_factory=dict)
    world: World = DECODER_ONLY


def build(
    v: Vocabulary, statement: Statement, fault: Fault | None = None, *, is_reachable: bool = True
) -> Formula:
    """The formula of a statement.

    Args:
        statement: what is to be shown.
        is_reachable: whether a counterexample has to obey every invariant before, and to count
            nothing below 0.
    """
    world = statement.world
    scope, before = world.a_scope(v), world.a_state(v)
    arguments = world.arguments(v, statement.transition)
    guards = world.guards if fault is None or fault.guards is None else fault.guards
    move = world.transitions[statement.transition].move(scope, before, guards, **arguments)
    if fault is not None and fault.twist is not None:
        move = fault.twist(v, scope, before, move)
    named = {name: invariant(scope, before) for name, invariant in world.invariants.items()}
    named |= move.guards | {SIZES: sizes_not_negative(scope)}
    premises = {name: named[name] for name in statement.using}
    premises |= {name: extra(scope, before, arguments) for name, extra in statement.extra.items()}
    realistic = world.plain(scope)
    if is_reachable:
        reached = world.all_invariants(scope, before)
        realistic = and_(realistic, world.plain_state(before), reached)
    return Formula(premises, statement.conclusion(scope, before, move, arguments), realistic)


def shown(
    group: Group,
    transition: str,
    *,
    using: tuple[str, ...],
    claim: str,
    sentence: str,
    given: Mapping[str, Extra] | None = None,
    world: World = DECODER_ONLY,
    name: str = "",
    faults: tuple[Fault, ...] = (),
    drops: tuple[str, ...] | None = None,
    witness: Mapping[str, Value] | None = None,
) -> Callable[[Shown], Shown]:
    """State a theorem on a transition: the decorated function is its conclusion.

    Args:
        using: names of the invariants before and of the guards that the proof uses.
        claim: id of the claim that it supports.
        sentence: what is shown, for a person.
        given: further premises, by name.
        name: its name in the group, where that of the function will not do.
        faults: known faults that must refute it.
        drops: premises that are dropped as ablations; guards and assumptions among them when not
            given.
        witness: a state and the arguments of the transition, where the transition's own of
            :data:`~proofs.theorems.runs.witnesses.WITNESSES` will not do.
    """

    def state(conclusion: Shown) -> Shown:
        statement = Statement(transition, using, conclusion, given or {}, world)
        data = WITNESSES[type(world.scope)][transition] if witness is None else witness
        group.add(
            Obligation(
                claim=claim,
                group=group.name,
                short_name=name or name_of(conclusion),
                sentence=sentence,
                build=partial(build, statement=statement),
                witness=world.completed(data),
                ablations=tuple(_ablations(statement, faults, drops)),
            )
        )
        return conclusion

    return state


def _ablations(
    statement: Statement, faults: tuple[Fault, ...], drops: tuple[str, ...] | None
) -> list[Ablation]:
    """One for each premise to drop and each fault; without any, that nothing happens."""
    invariants = statement.world.invariants
    guards = [name for name in statement.using if name not in invariants and name != SIZES]
    if drops is None:
        drops = (*guards, *statement.extra)
    # Without an invariant a counterexample need not be a state that a run can reach.
    anyhow = partial(build, statement=statement, is_reachable=False)
    ablations = [
        Ablation(name, drops=(name,), build=anyhow if name in invariants else None)
        for name in drops
    ]
    ablations += [
        Ablation(fault.name, build=partial(build, statement=statement, fault=fault))
        for fault in faults
    ]
    if ablations:
        return ablations
    used = [name for name in statement.using if name in invariants]
    if used:
        return [Ablation(used[0], drops=(used[0],), build=anyhow)]
    idle = partial(build, statement=statement, fault=_NOTHING, is_reachable=False)
    return [Ablation("nothing-happens", build=idle)]


def _does_nothing(v: Vocabulary, scope: Any, before: Any, move: Any) -> Any:
    return move._replace(after=before)


_NOTHING = Fault("nothing-happens", twist=_does_nothing)


def kept(
    group: Group,
    invariant: Invariant,
    *,
    claim: str,
    by: Mapping[str, tuple[str, ...]],
    faults: Mapping[str, tuple[Fault, ...]] | None = None,
    world: World = DECODER_ONLY,
) -> None:
    """State that transitions keep an invariant, a theorem for each of them.

    Args:
        invariant: one of the relation's invariants.
        claim: id of the claim that they support.
        by: for each transition the names of invariants and guards that the proof uses. A
            transition that is not named leaves everything as it is that the invariant looks at (a
            test compares the terms).
        faults: known faults that must refute a theorem, by transition.

    Raises:
        ValueError: the relation has no such invariant.
    """
    name = name_of(invariant)
    if world.invariants.get(name) is not invariant:
        raise ValueError(f"{name} is no invariant of this relation")
    text = (invariant.__doc__ or "").splitlines()[0].rstrip(".")
    for transition, using in by.items():
        shown(
            group,
            transition,
            using=using,
            claim=claim,
            sentence=f"`{transition}` keeps the invariant: {text[0].lower() + text[1:]}",
            world=world,
            name=f"{name}.{transition}",
            faults=(faults or {}).get(transition, ()),
        )(_holds_after(invariant))


def _holds_after(invariant: Invariant) -> Conclusion:
    return lambda scope, before, move, arguments: invariant(scope, move.after)
