"""What each path of a gather must have returned, claim by claim."""

from __future__ import annotations

from itertools import product

import z3

from proofs.source.code.gather import GatherOutcome
from proofs.source.functions.gather_scenario import GatherScenario
from proofs.symbolic.integers import term

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


def _named(scenario: GatherScenario, outcome: GatherOutcome) -> set[str]:
    assert outcome.error is not None
    return {h for h in scenario.resident if outcome.error.names(h)}


def _boundary_miss_tolerated(scenario: GatherScenario, outcome: GatherOutcome) -> z3.BoolRef | bool:
    if outcome.error is None or not _named(scenario, outcome):
        return True
    return z3.Or(scenario.any_interior_miss, z3.Not(_named_at_boundary(scenario, outcome)))


def _named_at_boundary(scenario: GatherScenario, outcome: GatherOutcome) -> z3.BoolRef:
    named = _named(scenario, outcome)
    return z3.Or(
        [
            z3.And(
                scenario.is_read(index),
                z3.Not(scenario.is_resident(index)),
                scenario.is_boundary(index),
            )
            for index, identifier in enumerate(scenario.shape.identifiers)
            if identifier in named
        ]
    )


def _interior_miss_raises(scenario: GatherScenario, outcome: GatherOutcome) -> z3.BoolRef | bool:
    if outcome.error is None:
        return z3.Not(scenario.any_interior_miss)
    named = _named(scenario, outcome)
    misses = scenario.interior_misses
    first_is_named = [
        z3.And(misses[index], *(z3.Not(earlier) for earlier in misses[:index]))
        for index, identifier in enumerate(scenario.shape.identifiers)
        if identifier in named
    ]
    return z3.Or(z3.Not(z3.Or(misses)), *first_is_named)


def _boundary_used(scenario: GatherScenario, outcome: GatherOutcome) -> z3.BoolRef | bool:
    if outcome.error is not None:
        return True
    returned = {view.identifier for view in outcome.views}
    return z3.And(
        z3.BoolVal(True, scenario.exploration.context),
        *(
            z3.Not(
                z3.And(
                    scenario.is_read(index),
                    scenario.is_boundary(index),
                    scenario.is_resident(index),
                )
            )
            for index, identifier in enumerate(scenario.shape.identifiers)
            if identifier not in returned
        ),
    )


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
    if not _named(scenario, outcome):
        return scenario.any_interior_miss
    return z3.Or(scenario.any_interior_miss, _named_at_boundary(scenario, outcome))
