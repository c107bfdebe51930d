"""Each claim stands once: broken in place, it turns red in every engine that can see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from impl.targets.runs import ReferenceLoop
from proofs.run.record import record
from proofs.smt.obligation import Obligation, prove
from proofs.source.code.recorders import OVERRIDES
from proofs.source.code.release import ReleaseSource
from proofs.source.passes.run_scenario import RunShape
from proofs.source.passes.runs import run_pieces
from proofs.source.passes.scheduling import scheduling_pieces
from proofs.theorems.runs import references, residency, slots
from spec.algebra import and_, implies, not_
from spec.claims import predicates, witnesses
from spec.claims.predicates import drafter_reads, is_at_boundary, target_reads
from spec.claims.register import PREDICATES
from spec.model.claims import CLAIMS as MODEL_CLAIMS
from spec.model.claims import claim_names
from spec.model.judge import Judge
from spec.model.layout import Layout
from spec.model.run import ModelPass, ModelUpdate, run_layout
from spec.model.update import initial_state
from spec.monitor.monitor import check_trace
from spec.record.scenario import Scenario
from spec.verdict import Verdict
from tests.support.fake_scheduler import write_scheduling_release
from tests.support.real_releases import real_release
from tests.support.source_mutants import shape_of


@dataclass(frozen=True)
class Break:
    """A claim made wrong.

    Attributes:
        statement: name of the function that is changed.
        wrong: what stands there instead; names are those of :mod:`spec.claims.predicates`.
        scenario: a run of a correct engine that the wrong statement forbids.
        theorem: a theorem on the relation that no longer holds; empty where the relation has no
            gather.
        shape: what is asked of a release's source; ``None`` where a claim is about the gather.
    """

    claim: str
    statement: str
    wrong: Callable[..., Any]
    scenario: Scenario
    theorem: str = ""
    shape: Any = None


_SCHEDULED = shape_of("A", "absent")
_WHOLE = shape_of("A", "absent", whole=True)
_FULL = shape_of("AB", "absent", "absent")
_RUN = RunShape("A", 1)

BREAKS = (
    Break(
        "target-resident",
        "target_resident",
        lambda feature, chunk, resident: not_(target_reads(feature, chunk)),
        witnesses.TWO_ITEMS,
        "residency.target-reads",
        _SCHEDULED,
    ),
    Break(
        "drafter-resident-or-boundary",
        "drafter_resident_or_boundary",
        lambda feature, chunk, resident: implies(drafter_reads(feature, chunk), resident),
        witnesses.FULL_CACHE,
        "residency.drafter-reads",
        _FULL,
    ),
    Break(
        "need-agrees",
        "need_agrees",
        lambda feature, chunk, asked, search_ended: implies(
            target_reads(feature, chunk), and_(is_at_boundary(feature, chunk), search_ended)
        ),
        witnesses.TWO_ITEMS,
        "residency.needs-are-asked",
        _SCHEDULED,
    ),
    Break(
        "item-whole",
        "item_whole",
        lambda feature, chunk: not_(
            and_(chunk.start <= feature.offset, feature.offset < chunk.end)
        ),
        witnesses.WHOLE_ITEMS,
        "residency.items-stay-whole",
        _WHOLE,
    ),
    Break(
        "slots-conserved",
        "slots_conserved",
        lambda free, freeable, occupied, referenced, cache_size: free >= cache_size,
        witnesses.TWO_ITEMS,
        "slots.slots-are-sums.enter",
        _SCHEDULED,
    ),
    Break(
        "slots-conserved",
        "freeable_is_unreferenced",
        lambda is_freeable, in_book, referenced: not_(in_book),
        witnesses.TWO_ITEMS,
        shape=_RUN,
    ),
    Break(
        "views-agree",
        "views_agree",
        lambda in_book, on_worker: not_(in_book),
        witnesses.TWO_ITEMS,
        "residency.worker-holds-the-book",
        _RUN,
    ),
    Break(
        "worker-bounded",
        "worker_bounded",
        lambda rows_on_worker, cache_size: rows_on_worker <= 0,
        witnesses.TWO_ITEMS,
        "slots.worker-fits",
        _RUN,
    ),
    Break(
        "fresh-tensor",
        "fresh_tensor",
        lambda is_read, is_own_content, since_reset, has_all_rows: not_(is_read),
        witnesses.TWO_ITEMS,
        "residency.reads-are-fresh",
    ),
    Break(
        "payload-available",
        "payload_available",
        lambda is_encoded, has_raw_data: not_(is_encoded),
        witnesses.TWO_ITEMS,
        "residency.raw-data-is-on-time",
    ),
    Break(
        "evicted-not-live",
        "evicted_not_live",
        lambda is_announced, in_book: not_(is_announced),
        witnesses.FULL_CACHE,
        "residency.notices-name-what-left",
    ),
    Break(
        "dropped-in-update",
        "dropped_in_update",
        lambda held_before, held_after, may_drop: implies(held_before, held_after),
        witnesses.PREEMPTION,
        "references.held-through-a-pass.stop",
        _RUN,
    ),
    Break(
        "freed-not-needed",
        "freed_not_needed",
        lambda let_go, needed_to, lowest_progress: not_(let_go),
        witnesses.TWO_ITEMS,
        "references.let-go-ends-by-lowest-progress",
        _RUN,
    ),
    Break(
        "held-until-last-use",
        "held_until_last_use",
        lambda taken, is_needed, referenced: not_(and_(taken, is_needed)),
        witnesses.TWO_ITEMS,
        "references.unreferenced-is-not-needed",
        _RUN,
    ),
    Break(
        "no-idle-references",
        "no_idle_references",
        lambda is_idle, is_needed, held: not_(held),
        witnesses.PREEMPTION,
        "references.who-waits-holds-nothing",
        _RUN,
    ),
    Break(
        "released",
        "released",
        lambda has_ended, held: and_(not_(held), not_(has_ended)),
        witnesses.TWO_ITEMS,
        "references.who-stops-holds-nothing",
        _RUN,
    ),
    Break(
        "boundary-miss-tolerated",
        "boundary_miss_tolerated",
        lambda at_boundary, resident, raises: resident,
        witnesses.FULL_CACHE,
    ),
    Break(
        "interior-miss-raises",
        "interior_miss_raises",
        lambda at_boundary, resident, raises: resident,
        witnesses.SHORT_SHIFT,
    ),
    Break(
        "boundary-used-when-resident",
        "boundary_used_when_resident",
        lambda at_boundary, resident, is_used: not_(at_boundary),
        witnesses.TWO_ITEMS,
    ),
    Break(
        "pass-uses-budget",
        "pass_uses_budget",
        lambda num_tokens, least, lacks: num_tokens > least,
        witnesses.SHORT_CHUNKS,
    ),
    Break(
        "threshold-kept",
        "threshold_kept",
        lambda num_tokens, known, threshold, whole_item, has_others: implies(
            and_(has_others, known > threshold), num_tokens < threshold
        ),
        witnesses.SHORT_CHUNKS,
    ),
    Break(
        "reservation-kept",
        "reservation_kept",
        lambda left, shift, has_shorter: implies(left > 0, left > shift),
        witnesses.LAST_CHUNK,
    ),
)
THEOREMS: dict[str, Obligation] = {
    obligation.name: obligation
    for group in (residency, references, slots)
    for obligation in group.GROUP.obligations
}


def _of(broken: Break) -> str:
    return broken.statement


@contextmanager
def made_wrong(broken: Break) -> Iterator[None]:
    """The statement with other code in its place, for everybody who calls it."""
    statement, wrong = getattr(predicates, broken.statement), broken.wrong
    assert isinstance(statement, FunctionType)
    assert isinstance(wrong, FunctionType)
    right, statement.__code__ = statement.__code__, wrong.__code__
    try:
        yield
    finally:
        statement.__code__ = right


def seen_by_monitor(broken: Break) -> set[str]:
    trace = record(ReferenceLoop(), broken.scenario, "V1").trace
    return {finding.claim for finding in check_trace(trace)}


def seen_by_model(broken: Break) -> set[str]:
    layout = Layout(broken.scenario.config, broken.scenario.requests)
    judge, state, found = Judge(layout), initial_state(layout), 0
    for step in run_layout(broken.scenario, layout):
        if isinstance(step, ModelPass):
            found |= judge.judge_pass(state, step.record, step.state)
        elif isinstance(step, ModelUpdate):
            found |= judge.judge_update(state, step.record, step.state)
        else:
            found |= judge.judge_event(step.state, step.error)
        state = step.state
    return set(claim_names(found))


def seen_in_source(broken: Break, folder: Path) -> set[str]:
    if isinstance(broken.shape, RunShape):
        pieces = run_pieces(real_release("0.33.0"), "0.33.0", broken.shape)
    else:
        release = ReleaseSource(write_scheduling_release(folder), OVERRIDES)
        pieces = scheduling_pieces(release, "fake", broken.shape)
    return {piece.claim for piece in pieces if piece.verdict is not Verdict.PROVED}


def test_every_statement_is_broken() -> None:
    """Wrong: a statement that nobody calls could say anything."""
    stated = {
        (claim, predicate.__name__) for claim, every in PREDICATES.items() for predicate in every
    }
    assert {(broken.claim, broken.statement) for broken in BREAKS} == stated


@pytest.mark.parametrize("broken", BREAKS, ids=_of)
def test_the_monitor_judges_by_it(broken: Break) -> None:
    """Wrong: recorded runs are judged by a copy of the claim."""
    assert broken.claim not in seen_by_monitor(broken) - {"need-agrees"}
    with made_wrong(broken):
        assert broken.claim in seen_by_monitor(broken)


@pytest.mark.parametrize(
    "broken", [broken for broken in BREAKS if broken.claim in MODEL_CLAIMS], ids=_of
)
def test_the_model_judges_by_it(broken: Break) -> None:
    """Wrong: the exhaustive search judges by a copy of the claim."""
    assert broken.claim not in seen_by_model(broken)
    with made_wrong(broken):
        assert broken.claim in seen_by_model(broken)


@pytest.mark.parametrize("broken", [broken for broken in BREAKS if broken.theorem], ids=_of)
def test_the_relation_is_proved_to_keep_it(broken: Break) -> None:
    """Wrong: the unbounded proof is of a copy of the claim."""
    theorem = THEOREMS[broken.theorem]
    assert theorem.claim == broken.claim
    with made_wrong(broken):
        assert prove(theorem).verdict is not Verdict.PROVED


@pytest.mark.parametrize(
    "broken", [broken for broken in BREAKS if broken.shape is not None], ids=_of
)
def test_a_source_is_proved_to_keep_it(broken: Break, tmp_path: Path) -> None:
    """Wrong: releases are proved to keep a copy of the claim."""
    assert broken.claim not in seen_in_source(broken, tmp_path / "right")
    with made_wrong(broken):
        assert broken.claim in seen_in_source(broken, tmp_path / "wrong")
