"""How a theorem is stated: name, claim, sentence, witness and ablations beside its formula.

A theorem is a function that builds its formula; the function's name is the theorem's. The decorator
:func:`theorem` adds it to its group::

    GROUP = Group("boundary")

    @theorem(
        GROUP,
        claim="runners-agree",
        sentence="V1's and V2's tolerance tests are equivalent",
        witness={"offset": 4, "length": 4},
        ablations=(without("look-aheads-differ", ONE_LOOK_AHEAD),),
    )
    def _v1_equals_v2(v: Vocabulary) -> Formula: ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from proofs.smt.obligation import Ablation, BuildFormula, Formula, Obligation
from proofs.smt.vocabulary import Assignment

Build = TypeVar("Build", bound=Callable[..., Formula])

Change: TypeAlias = Callable[[Callable[..., Formula]], Ablation]
"""Makes an ablation of the theorem's own formula."""


class Group:
    """Theorems on one subject, in the order in which they are stated.

    Args:
        name: the group's name, the first half of the name of each of its theorems.
        parts: groups of the same name, of other modules, whose theorems belong to this one.
    """

    def __init__(self, name: str, parts: Sequence[Group] = ()) -> None:
        self.name = name
        self._obligations = [obligation for part in parts for obligation in part.obligations]

    @property
    def obligations(self) -> tuple[Obligation, ...]:
        """The theorems stated so far."""
        return tuple(self._obligations)

    def add(self, obligation: Obligation) -> None:
        """Add a theorem.

        Raises:
            ValueError: the group has a theorem of that name.
        """
        if any(obligation.name == stated.name for stated in self._obligations):
            raise ValueError(f"{obligation.name} is stated twice")
        self._obligations.append(obligation)


def theorem(
    group: Group, *, claim: str, sentence: str, witness: Assignment, ablations: Sequence[Change]
) -> Callable[[Build], Build]:
    """State a theorem whose formula the decorated function builds; the function stays as it is.

    Args:
        claim: id of the claim that it supports.
        sentence: what is shown, for a person.
        witness: concrete data on which its premises hold.
        ablations: changes under which it must be refuted.
    """

    def state(build: Build) -> Build:
        group.add(
            Obligation(
                claim=claim,
                group=group.name,
                short_name=name_of(build),
                sentence=sentence,
                build=build,
                witness=witness,
                ablations=tuple(change(build) for change in ablations),
            )
        )
        return build

    return state


def name_of(build: Callable[..., Any]) -> str:
    """The theorem's name within its group: ``_never_empty`` states ``never-empty``."""
    return build.__name__.strip("_").replace("_", "-")


def without(name: str, *premises: str) -> Change:
    """The ablation that leaves premises out."""
    return lambda build: Ablation(name, drops=premises)


def changed(name: str, /, *, drops: tuple[str, ...] = (), **settings: Any) -> Change:
    """The ablation that builds the theorem's formula with other arguments.

    Args:
        drops: premises that it leaves out besides.
        settings: keyword arguments of the function that builds the formula.
    """
    return lambda build: Ablation(name, drops, partial(build, **settings))


def instead(name: str, formula: BuildFormula) -> Change:
    """The ablation that is a formula of its own."""
    return lambda build: Ablation(name, build=formula)
