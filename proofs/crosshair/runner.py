"""Every guard under CrossHair: its contract, its comparison with the rule, and its canaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from proofs.crosshair.explore import Exploration, Status, check, diffbehavior
from spec.verdict import Verdict

CONTRACTS = "proofs.crosshair.contracts"
CANARIES = "proofs.crosshair.canaries"
INTEGER_RULES = "proofs.crosshair.integer_rules"
REFERENCE = "impl.reference.scheduling.guards"

WORKERS = 2
"""CrossHair runs at a time; each is a process of one thread."""


@dataclass(frozen=True)
class Guard:
    """A guard of the reference.

    Attributes:
        name: its contract in :mod:`proofs.crosshair.contracts`.
        function: its name in :mod:`impl.reference.scheduling.guards`.
        compared: whether there is a rule with the same signature to compare it with.
        required: whether it must be exhausted, and has canaries; others are listed.
    """

    name: str
    function: str
    compared: bool = True
    required: bool = False


GUARDS: tuple[Guard, ...] = (
    Guard("free", "reference_may_go", required=True),
    Guard("tolerance_v1", "tolerates_miss_v1", required=True),
    Guard("tolerance_v2", "tolerates_miss_v2", required=True),
    Guard("overlap", "overlaps", required=True),
    Guard("split_item", "ends_inside"),
    Guard("free_encoder_decoder", "encoder_decoder_reference_may_go"),
    Guard("slice_bounds", "slice_bounds"),
    Guard("window_search", "search_window", compared=False),
    Guard("row_range", "rows_in_range", compared=False),
)


@dataclass(frozen=True)
class Job:
    """One exploration: what is run, and how it must end."""

    guard: str
    kind: str
    run: Callable[[], Exploration]
    must_be_exhausted: bool = False
    is_canary: bool = False


@dataclass(frozen=True)
class Report:
    """A job and how it ended."""

    job: Job
    exploration: Exploration

    @property
    def verdict(self) -> Verdict:
        """HELD if it ended as it must; a canary must be refuted."""
        status = self.exploration.status
        if status is Status.FAILED:
            return Verdict.ERROR
        if self.job.is_canary:
            return Verdict.HELD if status is Status.COUNTEREXAMPLE else Verdict.ERROR
        if status is Status.COUNTEREXAMPLE:
            return Verdict.REFUTED
        if status is Status.NOT_EXHAUSTED and self.job.must_be_exhausted:
            return Verdict.UNKNOWN
        return Verdict.HELD


def jobs(guards: Iterable[Guard] = GUARDS) -> tuple[Job, ...]:
    """Every exploration of the given guards."""
    return tuple(job for guard in guards for job in _jobs_of(guard))


def _jobs_of(guard: Guard) -> Iterator[Job]:
    rule = f"{INTEGER_RULES}.{guard.function}"

    def contract(module: str) -> Callable[[], Exploration]:
        return lambda: check(f"{module}.{guard.name}")

    def comparison(module: str) -> Callable[[], Exploration]:
        return lambda: diffbehavior(f"{module}.{guard.function}", rule)

    yield Job(guard.name, "contract", contract(CONTRACTS), guard.required)
    if guard.compared:
        yield Job(guard.name, "against the rule", comparison(REFERENCE), guard.required)
    if guard.required:
        yield Job(guard.name, "contract of canary", contract(CANARIES), is_canary=True)
        yield Job(guard.name, "canary against the rule", comparison(CANARIES), is_canary=True)


def run(selected: Sequence[Job]) -> Iterator[Report]:
    """Run the jobs, a few at a time, and yield the reports in the order of the jobs."""
    with ThreadPoolExecutor(WORKERS) as pool:
        explorations = pool.map(lambda job: job.run(), selected)
        for job, exploration in zip(selected, explorations, strict=True):
            yield Report(job, exploration)


def line_of(report: Report) -> str:
    """A report as one line of fixed columns."""
    exploration = report.exploration
    plural = "" if exploration.paths == 1 else "s"
    paths = f"{exploration.paths} path{plural}" if exploration.paths else ""
    status = exploration.status.value
    if report.job.is_canary and exploration.status is Status.COUNTEREXAMPLE:
        status = "found"
    line = f"{report.job.guard:20} {report.job.kind:24} {status:14} {paths:10}"
    return f"{line} {exploration.detail}".rstrip()
