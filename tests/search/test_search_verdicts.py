"""What a search over whole runs says where it saw no violation, or could have missed one."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

import pytest

from impl.reference.worker.worker import Worker
from impl.target import Runner
from impl.targets.functions import ReferenceTarget
from impl.targets.runs import ReferenceLoop
from impl.tensors import TensorSettings
from proofs.describe.scenarios import describe_scenario
from proofs.run import judge
from proofs.run.judge import run_and_judge
from proofs.run.record import record
from proofs.search.functions.check import run_check
from proofs.search.functions.results import CheckSettings
from proofs.search.runs.draws import draw
from proofs.search.runs.results import PROGRESS_CLAIMS, LoopCheckSettings
from proofs.search.runs.search import run_loop_check
from spec.functions.cases import WindowCase
from spec.functions.observations import RangeObservation
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest
from spec.record.steps import PassSeen, Step
from spec.verdict import Verdict, exit_code

_TWO_NOTICES = Scenario(
    EngineConfig(
        max_num_batched_tokens=2,
        encoder_compute_budget=2,
        encoder_cache_size=2,
        num_kv_blocks=16,
    ),
    (ScenarioRequest(5, (Feature(0, 1, "A"), Feature(1, 1, "B"), Feature(2, 2, "C"))),),
)
"""C needs the room of A and B, both of which are read in the pass before."""


def test_a_claim_that_was_never_put_to_the_test_is_vacuous() -> None:
    """Wrong: HELD, although no run has an interior miss."""
    report = run_loop_check(
        ReferenceLoop(), LoopCheckSettings(claims=("interior-miss-raises",), examples=2)
    )
    assert {(r.verdict, r.cases, r.premises) for r in report.results} == {(Verdict.VACUOUS, 2, 0)}
    assert exit_code(report.verdicts) == 4


def test_progress_of_runs_that_were_given_up_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: a run without an end counts as one that came to its end."""
    monkeypatch.setattr(judge, "record", partial(record, max_passes=1))
    report = run_loop_check(ReferenceLoop(), LoopCheckSettings(examples=40))
    for result in report.results:
        if result.claim in PROGRESS_CLAIMS:
            assert result.verdict is Verdict.UNKNOWN, result
            assert result.reason is not None
            assert result.reason.endswith("of 40 runs did not end in time")
        else:
            assert result.verdict in (Verdict.HELD, Verdict.VACUOUS), result
    assert exit_code(report.verdicts) == exit_code([Verdict.UNKNOWN])


def _drop_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the worker apply the first of several notices only."""
    drop_all = Worker._drop

    def drop_first(worker: Worker, identifiers: Sequence[str]) -> None:
        drop_all(worker, identifiers[:1])

    monkeypatch.setattr(Worker, "_drop", drop_first)


def test_the_worker_applies_every_notice_of_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: a worker that keeps what the second notice names is taken for a good one."""
    clean = run_and_judge(ReferenceLoop(), _TWO_NOTICES, ("V1",), None)
    passes = [step for step in clean.traces["V1"].steps if isinstance(step, PassSeen)]
    assert max(len(step.notices) for step in passes) == 2
    assert clean.findings["V1"] == ()
    _drop_the_first(monkeypatch)
    found = run_and_judge(ReferenceLoop(), _TWO_NOTICES, ("V1",), None).findings["V1"]
    assert {(f.claim, f.mechanism) for f in found} == {
        ("views-agree", "worker keeps a tensor that left the book"),
        ("worker-bounded", "worker outgrows the cache"),
    }


def test_the_search_finds_a_worker_that_applies_the_first_notice_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Wrong: drawn runs never evict two entries in a pass."""
    _drop_the_first(monkeypatch)
    report = run_loop_check(
        ReferenceLoop(), LoopCheckSettings(runners=("V1",), claims=("views-agree",), examples=120)
    )
    assert [result.verdict for result in report.results] == [Verdict.REFUTED]


class _Endless(ReferenceLoop):
    """A scheduler that never comes back from its third scenario, whatever is raised in it."""

    num_runs = 0

    def run(
        self, scenario: Scenario, runner: Runner, tensors: TensorSettings | None = None
    ) -> Iterator[Step]:
        self.num_runs += runner == "V1"
        if self.num_runs < 3:
            yield from super().run(scenario, runner, tensors)
            return
        while True:
            with suppress(Exception):
                while True:
                    pass


def test_an_endless_run_is_an_error_with_its_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: a loop in a checkout hangs the search, or what was not run counts as held."""
    monkeypatch.setattr("proofs.run.record.SECONDS_OF_A_RUN", 0.2)
    target = _Endless(())
    report = run_loop_check(target, LoopCheckSettings(examples=40))
    assert target.num_runs == 3
    assert report.num_scenarios == 3
    (failure,) = (text for text in report.failures if text.startswith("V1: "))
    assert failure.startswith("V1: reference V1: no end after 0.2 s of computing, on ")
    assert describe_scenario(draw(report.settings, 2).scenario) in failure
    by_part = {(result.part, result.verdict) for result in report.results}
    errors = {("V1", Verdict.ERROR), ("V2", Verdict.ERROR)}
    assert by_part == {*errors, ("V1 with V2", Verdict.UNKNOWN)}
    assert not report.interrupted
    assert exit_code(report.verdicts) == exit_code([Verdict.ERROR])
    # What came after it runs without a limit that is left over.
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGPROF) == signal.SIG_DFL


def test_a_function_without_an_end_is_an_error_with_its_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Wrong: a loop in a checkout's function hangs the check, which asks for it again and again."""
    monkeypatch.setattr("proofs.search.functions.check.SECONDS_OF_A_RUN", 0.2)

    class Endless(ReferenceTarget):
        num_calls = 0

        def window(self, case: WindowCase) -> RangeObservation:
            self.num_calls += 1
            while True:
                pass

    target = Endless()
    report = run_check(target, CheckSettings(parts=("window", "row_range"), examples=5))
    assert target.num_calls == 1
    verdicts = {result.part: result for result in report.results}
    assert verdicts["window"].verdict is Verdict.ERROR
    assert "no end after 0.2 s of computing, on " in str(verdicts["window"].reason)
    assert verdicts["row_range"].verdict in (Verdict.HELD, Verdict.VACUOUS)
