"""Every mutant of a release's scheduling of encoder inputs turns a proof of its source red.

Each is compared with the release's rule; claims are asked on the shape that is recorded to show the
mutant, and on all shapes under the profile ``nightly``. Other runs take one mutant an expression.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache

import pytest

from proofs.smt.mutate import Mutant
from spec.verdict import Verdict
from tests.recorders.record_source_mutants import recorded
from tests.support.nightly import asks_all, sampled
from tests.support.source_mutants import (
    RELEASE,
    SAME,
    SHAPES,
    Red,
    against_the_rule,
    first_red,
    key_of,
    made,
    name_of,
    original,
    proved,
)

MUTANTS = recorded()
WITH_CLAIM = [name for name, entry in MUTANTS.items() if entry["claim"] is not None]


def _expression(name: str) -> str:
    """The line and the expression that a mutant changes."""
    return name.split(" -> ")[0]


def _different_first(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: name in SAME)


@cache
def _made() -> dict[str, Mutant]:
    release = original()
    if release is None:
        pytest.skip(f"vLLM {RELEASE} IS NOT HERE, so no mutant was made of it; run `make vllm`")
    return {key_of(mutant): mutant for mutant in made(release)}


@pytest.mark.vllm
def test_every_mutant_is_recorded() -> None:
    """Wrong: a guard whose mutants nobody has looked at."""
    assert list(_made()) == list(MUTANTS)
    release = original()
    assert release is not None
    assert max(Counter(key_of(mutant) for mutant in made(release)).values()) == 1


def test_every_mutant_is_red_or_the_same() -> None:
    """Wrong: a mutant that no proof sees and nobody has explained, or an excuse for a red one."""
    alive = {n for n, entry in MUTANTS.items() if entry["rule"] is None and entry["claim"] is None}
    assert alive == SAME.keys()
    assert all(SAME.values())


@pytest.mark.vllm
def test_the_release_equals_its_rule() -> None:
    """Wrong: mutants that differ from a rule that is not the release's own show nothing."""
    _made()
    assert against_the_rule().verdict is Verdict.PROVED


@pytest.mark.vllm
@pytest.mark.parametrize(
    "name", sampled("mutants of a release's scheduling", _different_first(MUTANTS), _expression)
)
def test_a_mutant_differs_from_the_rule_as_recorded(name: str) -> None:
    """Wrong: a guard that no proof looks at; or a mutant that is said to do the same and does not.

    Where no difference is recorded, the mutant is proved to equal the rule for all integers.
    """
    piece = against_the_rule(_made()[name].tree)
    expected = MUTANTS[name]["rule"]
    assert piece.verdict is (Verdict.PROVED if expected is None else Verdict.REFUTED)
    assert expected in (None, piece.detail)


@pytest.mark.vllm
@pytest.mark.parametrize(
    "name", sampled("mutants of a release's scheduling", WITH_CLAIM, _expression)
)
def test_a_mutant_breaks_the_recorded_claim(name: str) -> None:
    """Wrong: a claim that no longer sees what it saw of a broken guard."""
    red = Red(**MUTANTS[name]["claim"])
    (shape,) = (shape for shape in SHAPES if name_of(shape) == red.shape)
    tree = _made()[name].tree
    assert (red.claim, red.part) in proved(shape)
    assert first_red(tree, [shape]) == red


@pytest.mark.vllm
def test_no_other_shape_shows_a_mutant() -> None:
    """Wrong: a record that says less, or more, than the proofs show on all shapes."""
    if not asks_all("shapes that show a mutant"):
        pytest.skip("every shape is asked about under the profile nightly")
    for name, mutant in _made().items():
        claim = MUTANTS[name]["claim"]
        assert first_red(mutant.tree) == (None if claim is None else Red(**claim)), name
