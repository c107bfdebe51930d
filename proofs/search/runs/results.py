"""What a search over whole runs was asked for, and what it found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from impl.target import RUNNERS, Runner
from impl.tensors import TensorSettings
from proofs.results.outcome import Outcome
from proofs.search.runs.frame import Assumption
from spec.claims.texts import LOOP_CLAIMS, loop_claim
from spec.errors import InputError
from spec.record.run_findings import LoopFinding
from spec.record.steps import Trace
from spec.verdict import Verdict

DEFAULT_EXAMPLES = 2000

Mode: TypeAlias = Literal["sync", "async", "both"]
"""Which engines run: passes one by one, or scheduled ahead; ``both`` as the draws have it."""

BOTH_RUNNERS_CLAIMS: tuple[str, ...] = ("runners-agree",)
"""Claims that need the runs of both runners."""

RUNNER_CLAIMS: tuple[str, ...] = tuple(
    claim.id for claim in LOOP_CLAIMS.values() if claim.id not in BOTH_RUNNERS_CLAIMS
)
"""Claims that one run can contradict, in the order of reports."""

PROGRESS_CLAIMS = frozenset(
    {"no-stall", "no-thrash", "work-conserving", "pass-uses-budget", "released"}
)
"""Claims about which a run that was given up says nothing."""


@dataclass(frozen=True)
class LoopCheckSettings:
    """What to check and how hard.

    Attributes:
        runners: whose order and gathers run.
        claims: ids of the claims to report; ``None`` for all.
        examples: scenarios to draw; ``None`` draws until the minutes are over.
        minutes: how long to draw and to make small what was found; ``None`` for no limit. What is
            drawn depends on the seed alone, how much of it on the machine.
        seed: the same seed draws the same scenarios.
        tensors: device, dtype and hidden size; ``None`` runs on rows alone.
        breaks: assumptions that scenarios may break.
        large_every: each so many scenarios one is large; 0 for none.
        mode: which engines run; what is drawn for the other one runs on this one instead.
    """

    runners: tuple[Runner, ...] = RUNNERS
    claims: tuple[str, ...] | None = None
    examples: int | None = DEFAULT_EXAMPLES
    minutes: float | None = None
    seed: int = 0
    tensors: TensorSettings | None = None
    breaks: frozenset[Assumption] = frozenset()
    large_every: int = 200
    mode: Mode = "both"

    def reports(self, claim: str) -> bool:
        """Whether a claim is among the chosen ones."""
        return self.claims is None or claim in self.claims

    def validate(self) -> None:
        """Check that there is something to do.

        Raises:
            InputError: an unknown claim, no examples, no time, no runner, a device that does not
                exist, or a claim on both runners where only one runs.
        """
        for claim in self.claims or ():
            loop_claim(claim)
        if self.examples is None and self.minutes is None:
            raise InputError("a search without an end; give it examples or minutes")
        if self.examples is not None and self.examples < 1:
            raise InputError(f"{self.examples} examples check nothing; ask for at least 1")
        if self.minutes is not None and not 0 < self.minutes < math.inf:
            raise InputError(f"{self.minutes} minutes are no time to search; give more than 0")
        if len(self.runners) < len(RUNNERS) and self.claims == BOTH_RUNNERS_CLAIMS:
            raise InputError(f"{', '.join(self.claims)} compares the runners; run both")
        if self.tensors is not None:
            self.tensors.require_device()


@dataclass(frozen=True)
class LoopCounterexample:
    """A violation with its smallest run.

    Attributes:
        finding: what is violated; its shape says what the scenario needs.
        trace: the run that shows it, up to where the monitor had seen enough.
        runners: runners on which the search saw it.
    """

    finding: LoopFinding
    trace: Trace
    runners: tuple[Runner, ...]


@dataclass(frozen=True)
class LoopReport:
    """Everything a search found.

    Attributes:
        results: one for each claim and runner; ``cases`` are runs, ``premises`` those in which the
            claim's premise happened.
        num_scenarios: scenarios drawn.
        families: how many of them belong to each family.
        failures: the first run of each runner that the target or the monitor could not finish.
        interrupted: the search was stopped; the rest holds what was known by then.
        not_given: of each runner, why the target could not be given scenarios, and how many.
        num_not_shrunk: violations that were not made as small as they get, for want of time.
    """

    target: str
    settings: LoopCheckSettings
    results: tuple[Outcome, ...]
    counterexamples: tuple[LoopCounterexample, ...]
    num_scenarios: int
    families: Mapping[str, int]
    failures: tuple[str, ...] = ()
    interrupted: bool = False
    not_given: Mapping[Runner, Mapping[str, int]] = field(default_factory=dict)
    num_not_shrunk: int = 0

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Verdicts of everything that ran."""
        return tuple(result.verdict for result in self.results if result.verdict is not None)
