"""What each path of a gather must have returned, claim by claim."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from itertools import product

import z3

import proofs.smt.solvers  # noqa: F401 - registers z3's terms with the algebra
from proofs.source.code.gather import GatherOutcome
from proofs.source.functions.gather_scenario import GatherScenario
from proofs.symbolic.integers import term
from spec.claims import predicates as claims

CLAIMS = (
    "boundary-miss-tolerated",
    "interior-miss-raises",
    "boundary-used-when-resident",
    "rows-exact",
    "mask-exact",
    "no-error",
)
"""Claims proved on each gather, in the order in which they are reported."""


def holds(claim: str, scenario: GatherScenario, outcome: GatherOutcome) -> z3.BoolRef | bool:
    """The condition under which one path's outcome satisfies a claim.

    An error where the oracle has rows counts under the miss claims only.
    """
    rules = {
        "boundary-miss-tolerated": _boundary_miss_tolerated,
        "interior-miss-raises": _interior_miss_raises,
        "boundary-used-when-resident": _boundary_used,
        "rows-exact": _rows_exact,
        "mask-exact": _mask_exact,
        "no-error": _no_error,
    }
    return rules[claim](scenario, outcome)


def tolerates(scenario: GatherScenario, outcome: GatherOutcome) -> bool:
    """Whether the path skipped everything without an error (for one feature that is missing)."""
    return outcome.error is None and not outcome.views


def _named(scenario: GatherScenario, outcome: GatherOutcome) -> frozenset[str]:
    """The hashes that an error names; none where nothing is raised."""
    error = outcome.error
    return frozenset(h for h in scenario.resident if error is not None and error.names(h))


def _of_each_read(
    scenario: GatherScenario,
    statement: Callable[[z3.BoolRef, z3.BoolRef, bool], z3.BoolRef],
    became: Container[str],
    *,
    only: bool,
) -> list[z3.BoolRef]:
    """What a claim asks of each feature that the gather reads.

    Args:
        statement: a claim of :mod:`spec.claims.predicates` on a feature that is read.
        became: hashes of which it is true what the claim's last argument says.
        only: what that argument must be for the claim to ask anything; the other features are left
            out, since building terms dominates the time.
    """
    return [
        z3.Implies(
            scenario.is_read(index),
            statement(scenario.is_at_boundary(index), scenario.is_resident(index), only),
        )
        for index, identifier in enumerate(scenario.shape.identifiers)
        if (identifier in became) == only
    ]


def _all(scenario: GatherScenario, conditions: Iterable[z3.BoolRef]) -> z3.BoolRef:
    return z3.And(z3.BoolVal(True, scenario.exploration.context), *conditions)


def _boundary_miss_tolerated(scenario: GatherScenario, outcome: GatherOutcome) -> z3.BoolRef | bool:
    named = _named(scenario, outcome)
    if not named:
        return True
    return z3.Or(scenario.any_interior_miss, _boundary_misses_tolerated(scenario, named))


def _boundary_misses_tolerated(scenario: GatherScenario, named: frozenset[str]) -> z3.BoolRef:
    statement = claims.boundary_miss_tolerated
    return _all(scenario, _of_each_read(scenario, statement, named, only=True))


def _interior_miss_raises(scenario: GatherScenario, outcome: GatherOutcome) -> z3.BoolRef | bool:
    """An error names one hash: that of the first miss."""
    named = _named(scenario, outcome)
    misses = scenario.interior_misses
    return _all(
        scenario,
        (
            z3.Implies(
                z3.And(scenario.is_read(index), *(z3.Not(earlier) for earlier in misses[:index])),
                claims.interior_miss_raises(
                    scenario.is_at_boundary(index), scenario.is_resident(index), False
                ),
            )
            for index, identifier in enumerate(scenario.shape.identifiers)
            if identifier not in named
        ),
    )


def _boundary_used(scenario: GatherScenario, outcome: GatherOutcome) -> z3.BoolRef | bool:
    if outcome.error is not None:
        return True
    returned = {view.identifier for view in outcome.views}
    statement = claims.boundary_used_when_resident
    return _all(scenario, _of_each_read(scenario, statement, returned, only=False))


def _rows_exact(scenario: GatherScenario, outcome: GatherOutcome) -> z3.BoolRef | bool:
    if outcome.error is not None:
        return True
    context = scenario.exploration.context
    count = len(scenario.offsets)
    used = [z3.And(scenario.is_read(i), scenario.is_resident(i)) for i in range(count)]
    alternatives = [scenario.any_interior_miss]
    for chosen in product((True, False), repeat=count):
        expected = [index for index in range(count) if chosen[index]]
        if len(expected) != len(outcome.views):
            continue
        conditions = [u if wanted else z3.Not(u) for u, wanted in zip(used, chosen, strict=True)]
        for view, index in zip(outcome.views, expected, strict=True):
            low, high = scenario.rows(index)
            same = view.identifier == scenario.shape.identifiers[index]
            conditions.append(z3.BoolVal(same, context))
            conditions.append(term(view.start, context) == low)
            conditions.append(term(view.stop, context) == high)
        alternatives.append(z3.And(conditions))
    return z3.Or(alternatives)


def _mask_exact(scenario: GatherScenario, outcome: GatherOutcome) -> z3.BoolRef | bool:
    if outcome.error is not None:
        return True
    assert outcome.mask is not None
    context = scenario.exploration.context
    total = scenario.before.term + scenario.scheduled.term
    position = scenario.position
    same = scenario.written_at_position(outcome) == scenario.mask_at_position
    return z3.Or(
        scenario.any_interior_miss,
        z3.And(
            term(outcome.mask.size, context) == total,
            *(
                z3.And(
                    term(write.start, context) >= 0,
                    term(write.start, context) <= term(write.stop, context),
                    term(write.stop, context) <= total,
                )
                for write in outcome.mask.writes
            ),
            z3.Implies(z3.And(position >= 0, position < total), same),
        ),
    )


def _no_error(scenario: GatherScenario, outcome: GatherOutcome) -> z3.BoolRef | bool:
    if outcome.error is None:
        # Tensors of unlike lengths cannot be written to each other: that is an error of torch's.
        return z3.Or(scenario.any_interior_miss, scenario.lengths_agree(outcome))
    named = _named(scenario, outcome)
    if not named:
        return scenario.any_interior_miss
    tolerated = _boundary_misses_tolerated(scenario, named)
    return z3.Or(scenario.any_interior_miss, z3.Not(tolerated))
