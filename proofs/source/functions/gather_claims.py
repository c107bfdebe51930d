"""What each path of a gather must have returned, claim by claim."""

from __future__ import annotations

from collections.abc import Callable, Container
from itertools import product

from proofs.source.code.gather import GatherOutcome
from proofs.source.functions.gather_scenario import GatherScenario
from spec.algebra import BoolTerm, and_, eq, iff, implies, not_, or_
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


def holds(claim: str, scenario: GatherScenario, outcome: GatherOutcome) -> BoolTerm:
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
    statement: Callable[[BoolTerm, BoolTerm, bool], BoolTerm],
    became: Container[str],
    *,
    only: bool,
) -> list[BoolTerm]:
    """What a claim asks of each feature that the gather reads.

    Args:
        statement: a claim of :mod:`spec.claims.predicates` on a feature that is read.
        became: hashes of which it is true what the claim's last argument says.
        only: what that argument must be for the claim to ask anything; the other features are left
            out, since building terms dominates the time.
    """
    return [
        implies(
            scenario.is_read(index),
            statement(scenario.is_at_boundary(index), scenario.is_resident(index), only),
        )
        for index, identifier in enumerate(scenario.shape.identifiers)
        if (identifier in became) == only
    ]


def _boundary_miss_tolerated(scenario: GatherScenario, outcome: GatherOutcome) -> BoolTerm:
    named = _named(scenario, outcome)
    if not named:
        return True
    return or_(scenario.any_interior_miss, _boundary_misses_tolerated(scenario, named))


def _boundary_misses_tolerated(scenario: GatherScenario, named: frozenset[str]) -> BoolTerm:
    statement = claims.boundary_miss_tolerated
    return and_(*_of_each_read(scenario, statement, named, only=True))


def _interior_miss_raises(scenario: GatherScenario, outcome: GatherOutcome) -> BoolTerm:
    """An error names one hash: that of the first miss."""
    named = _named(scenario, outcome)
    misses = scenario.interior_misses
    return and_(
        *(
            implies(
                and_(scenario.is_read(index), *(not_(earlier) for earlier in misses[:index])),
                claims.interior_miss_raises(
                    scenario.is_at_boundary(index), scenario.is_resident(index), False
                ),
            )
            for index, identifier in enumerate(scenario.shape.identifiers)
            if identifier not in named
        )
    )


def _boundary_used(scenario: GatherScenario, outcome: GatherOutcome) -> BoolTerm:
    if outcome.error is not None:
        return True
    returned = {view.identifier for view in outcome.views}
    statement = claims.boundary_used_when_resident
    return and_(*_of_each_read(scenario, statement, returned, only=False))


def _rows_exact(scenario: GatherScenario, outcome: GatherOutcome) -> BoolTerm:
    if outcome.error is not None:
        return True
    count = len(scenario.features.offsets)
    used = [and_(scenario.is_read(i), scenario.is_resident(i)) for i in range(count)]
    alternatives = [scenario.any_interior_miss]
    for chosen in product((True, False), repeat=count):
        expected = [index for index in range(count) if chosen[index]]
        if len(expected) != len(outcome.views):
            continue
        conditions = [u if wanted else not_(u) for u, wanted in zip(used, chosen, strict=True)]
        for view, index in zip(outcome.views, expected, strict=True):
            low, high = scenario.rows(index)
            same = view.identifier == scenario.shape.identifiers[index]
            conditions.append(same)
            conditions.append(eq(view.start, low))
            conditions.append(eq(view.stop, high))
        alternatives.append(and_(*conditions))
    return or_(*alternatives)


def _mask_exact(scenario: GatherScenario, outcome: GatherOutcome) -> BoolTerm:
    if outcome.error is not None:
        return True
    assert outcome.mask is not None
    total = scenario.before + scenario.scheduled
    position = scenario.position
    same = iff(scenario.written_at_position(outcome), scenario.mask_at_position)
    return or_(
        scenario.any_interior_miss,
        and_(
            eq(outcome.mask.size, total),
            *(
                and_(
                    write.start >= 0,
                    write.start <= write.stop,
                    write.stop <= total,
                )
                for write in outcome.mask.writes
            ),
            implies(and_(position >= 0, position < total), same),
        ),
    )


def _no_error(scenario: GatherScenario, outcome: GatherOutcome) -> BoolTerm:
    if outcome.error is None:
        # Tensors of unlike lengths cannot be written to each other: that is an error of torch's.
        return or_(scenario.any_interior_miss, scenario.lengths_agree(outcome))
    named = _named(scenario, outcome)
    if not named:
        return scenario.any_interior_miss
    tolerated = _boundary_misses_tolerated(scenario, named)
    return or_(scenario.any_interior_miss, not_(tolerated))
