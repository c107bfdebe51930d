"""The source of three releases under proof: three free rules, two tolerated sets, what fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from impl.target import RUNNERS
from impl.vllm.launch.source import cache_folder, unpacked
from proofs.smt.mutate import Mutant
from proofs.source.answers import Answers
from proofs.source.check import SourceReport, check_source
from proofs.source.mutants import GUARDS, Guards, judged_mutants, mutants_of
from spec.verdict import Verdict
from tests.recorders.record_releases import recorded
from tests.support.nightly import sampled

pytestmark = pytest.mark.vllm

RELEASES = ("0.23.0", "0.24.0", "0.33.0")
PARTS = (*RUNNERS, "free", "window", "row_range", "book", "encoder_decoder_book")

_SLICE = ("start_idx < end_idx", "start_idx <= end_idx")
_PRUNES = "self.is_multimodal_pruning_enabled and self.uses_mrope"

ALIVE = {
    "book": {
        # Falls through to the eviction loop, which has nothing to do, and answers the same.
        ("num_embeds <= self.num_free_slots", "num_embeds < self.num_free_slots"),
        # Assertions that never fail may be weaker.
        (
            "self.num_free_slots >= num_encoder_embeds",
            "self.num_free_slots >= num_encoder_embeds - 1",
        ),
        (
            "self.num_freeable_slots >= num_encoder_embeds",
            "self.num_freeable_slots >= num_encoder_embeds - 1",
        ),
    },
    "V1": {
        # Pruning and its positions are not covered.
        (_PRUNES, "self.uses_mrope"),
        (_PRUNES, "self.is_multimodal_pruning_enabled"),
        ("req_state.mrope_positions is not None", "req_state.mrope_positions is None"),
        # An assertion that never fails may be weaker.
        _SLICE,
    },
    "V2": {
        # Skipping a request that is past its prefill saves time only: features lie in the prompt.
        ("not self.is_realtime", "self.is_realtime"),
        ("num_computed_tokens >= prefill_lens", "num_computed_tokens > prefill_lens"),
        (
            "exclude_embeddings is not None and exclude_embeddings[i]",
            "exclude_embeddings[i]",
        ),
        ("exclude_embeddings is not None", "exclude_embeddings is None"),
        _SLICE,
    },
}
"""Mutants of 0.33.0 that change nothing that a claim is about, and why."""


def _package(release: str) -> Path:
    source = unpacked(cache_folder(), release)
    if source is None:
        pytest.skip(f"vLLM {release} IS NOT HERE, so its source was not proved; run `make vllm`")
    return source.package


@pytest.fixture(scope="module", params=RELEASES)
def report(request: pytest.FixtureRequest) -> SourceReport:
    # One feature shows every recorded refutation; what two and three add is proved by `.ci/run`.
    # The scheduling and whole runs, of which that is not so, have tests of their own.
    return check_source(
        _package(request.param), request.param, parts=PARTS, max_features=1, answers=Answers()
    )


def test_three_releases_have_three_free_rules_and_two_tolerated_sets() -> None:
    """What changed between them is what this project was founded on (45347, 46315)."""
    assert len({recorded()[release]["free_rule"] for release in RELEASES}) == 3
    assert len({recorded()[release]["tolerated"]["V1"] for release in RELEASES}) == 2
    assert len({recorded()[release]["tolerated"]["V2"] for release in RELEASES}) == 2


def test_the_free_rule_is_the_recorded_one(report: SourceReport) -> None:
    """Three releases, three rules: no placeholders; with them and a margin; with them alone."""
    (rule,) = (r for r in report.results if r.claim == "rule:reference_may_go")
    assert rule.detail == recorded()[report.release]["free_rule"]


def test_the_tolerated_set_is_the_recorded_one(report: SourceReport) -> None:
    """Nothing was tolerated before 46315; afterwards exactly the boundary features are."""
    sets = {r.part: r.detail for r in report.results if r.claim.startswith("rule:miss_tolerated")}
    assert sets == recorded()[report.release]["tolerated"]


def test_exactly_the_recorded_claims_are_refuted(report: SourceReport) -> None:
    """Anything more is news, anything less a proof that has stopped looking."""
    refuted = sorted({(r.claim, r.part) for r in report.results if r.verdict is Verdict.REFUTED})
    expected = recorded()[report.release]["source_refuted"]
    expected = [pair for pair in expected if not pair[1].startswith(("scheduling", "runs"))]
    assert [list(pair) for pair in refuted] == expected
    rest = [r for r in report.results if r.verdict not in (Verdict.PROVED, Verdict.REFUTED)]
    assert rest == []
    assert not report.unavailable


def test_every_refutation_was_replayed(report: SourceReport) -> None:
    """A counterexample that only the solver has seen convinces nobody."""
    for result in report.results:
        if result.verdict is Verdict.REFUTED and not result.is_rule:
            assert result.finding is not None
            assert result.finding.claim == result.claim


def _change(mutant: Mutant) -> tuple[str, ...]:
    return tuple(mutant.change.split(" -> "))


@pytest.mark.parametrize("guards", GUARDS, ids=lambda guards: guards.part)
def test_a_mutant_of_each_guard_turns_red(guards: Guards) -> None:
    """Wrong: a guard whose mutant stays green is a guard that the proof does not look at."""
    package, unchanged = _package("0.33.0"), ALIVE.get(guards.part, set())
    # Of each expression one that must turn red, if there is one.
    made = sorted(mutants_of(package, guards), key=lambda mutant: _change(mutant) in unchanged)
    assert unchanged <= {_change(mutant) for mutant in made}
    tried = sampled(
        "mutants of a release's guards", made, lambda m: (m.function, m.line, _change(m)[0])
    )
    # One feature shows every mutant of a gather; two would only take longer over those alive.
    features = 1 if guards.part in RUNNERS else 2
    judged = judged_mutants(package, "0.33.0", guards, tried, features, Answers())
    alive = {_change(mutant) for mutant, piece in judged if piece is None}
    assert alive == unchanged & {_change(mutant) for mutant in tried}
