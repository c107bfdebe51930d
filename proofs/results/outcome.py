"""What became of claims: the one shape that every engine's answers take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proofs.results.violation import Violation
from spec.verdict import Verdict

NOT_AVAILABLE = "NOT AVAILABLE"
"""What stands in a table for no verdict."""

_STRICT = {"extra": "forbid"}


@dataclass(frozen=True)
class Ablation:
    """A variant of a theorem with a guard or a premise left out, which must be refuted.

    Attributes:
        name: what was left out.
        verdict: ``REFUTED``, as it should be, or what else became of it.
        model: the smallest counterexample.
    """

    name: str
    verdict: Verdict
    model: Mapping[str, Any] | None

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Proof:
    """How solvers settled a claim.

    Attributes:
        group: group of the theorem; ``source`` for the source of a release.
        solvers: what each answered to the negated formula.
        rlimit: resource units that z3 counted.
        milliseconds: how long it took (ms).
        witness: concrete data on which the premise holds.
        ablations: variants that must be refuted.
        shapes: shapes of input, for a source.
        paths: paths of its code, likewise.
        queries: questions to a solver on the way, likewise.
        unfinished: paths that were given up, likewise; each makes the verdict ``UNKNOWN``.
    """

    group: str
    solvers: Mapping[str, str]
    rlimit: int
    milliseconds: float
    witness: Mapping[str, Any] | None = None
    ablations: tuple[Ablation, ...] = ()
    shapes: int | None = None
    paths: int | None = None
    queries: int | None = None
    unfinished: int | None = None

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Outcome:
    """What became of one claim on one part of a target.

    Attributes:
        claim: id of the claim.
        part: what it was checked on: a function, a runner, a theorem, a scope.
        verdict: ``None`` where nothing was asked of the part.
        cases: cases, runs or scenarios in which it could have been broken; ``None`` where nothing
            is counted. Of an exploration: those in which it is broken.
        premises: those among them in which its premise happens.
        fingerprints: of the violations.
        reason: why there is no verdict or no better one, a formula that was found, or what was
            seen.
        assumptions: ids of the assumptions that it rests on.
        without: an assumption that the part's cases break on purpose.
        proof: how solvers settled it, where they did.
    """

    claim: str
    part: str
    verdict: Verdict | None
    cases: int | None = None
    premises: int | None = None
    fingerprints: tuple[str, ...] = ()
    reason: str | None = None
    assumptions: tuple[str, ...] = ()
    without: str | None = None
    proof: Proof | None = None

    __pydantic_config__ = _STRICT

    @property
    def verdict_name(self) -> str:
        """The verdict's name, or what stands for none."""
        return NOT_AVAILABLE if self.verdict is None else self.verdict.name


@dataclass(frozen=True)
class Checked:
    """What became of one target.

    Attributes:
        target: its name.
        outcomes: what became of each claim on each part.
        violations: each fault that was found, with its smallest case or run.
        release: release of the vLLM, where it is one.
        source: folder of the vLLM, where it is no release.
        digest: of the vLLM's source.
        scheduler_class: scheduler in place of vLLM's own.
        details: what only this kind of result has.
    """

    target: str
    outcomes: tuple[Outcome, ...]
    violations: tuple[Violation, ...] = ()
    release: str | None = None
    source: str | None = None
    digest: str | None = None
    scheduler_class: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    __pydantic_config__ = _STRICT
