"""Compare what two vLLMs show on the same scenarios: findings, and behaviour without any."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from impl.target import RUNNERS, Runner
from proofs.drive.jobs import Behaviour
from proofs.results.document import load
from proofs.search.runs.results import LoopCounterexample, LoopReport
from proofs.search.runs.search_text import search_code
from spec.errors import InputError, described
from spec.record.compare import Difference, first_difference
from spec.record.steps import Trace
from spec.verdict import Verdict, exit_code


@dataclass(frozen=True)
class KnownFinding:
    """A finding of the earlier search."""

    claim: str
    mechanism: str
    fingerprint: str

    @property
    def key(self) -> tuple[str, str]:
        """Claim and mechanism."""
        return self.claim, self.mechanism


@dataclass(frozen=True)
class Earlier:
    """The search to compare with.

    Attributes:
        draws: what decides which scenario has which number.
        behaviour: what its runs looked like; ``None`` where nothing of it is known.
    """

    target: str
    findings: tuple[KnownFinding, ...]
    draws: tuple[Any, ...]
    behaviour: Behaviour | None

    @property
    def is_of_this_code(self) -> bool:
        """Whether this version of the program made it."""
        return bool(self.draws[-1] == search_code())


@dataclass(frozen=True)
class Parting:
    """A scenario whose runs differ, one with no broken claim where there is any.

    Attributes:
        number: number of the scenario.
        is_broken: a claim is broken on it, as on every other scenario that differs.
    """

    number: int
    runner: Runner
    is_broken: bool


@dataclass(frozen=True)
class Compared:
    """How a search relates to an earlier one.

    Attributes:
        earlier: name of what was searched earlier.
        new: fingerprints of findings that the earlier one does not show.
        there: fingerprints of those that it shows too.
        fixed: findings of the earlier one alone.
        num_compared: runs that both made.
        num_differing: those among them that differ.
        parting: the first that differs, one without a broken claim if there is any.
        difference: its first difference, the earlier run first; ``None`` where that is not known.
        traces: both runs of it, the earlier one first.
    """

    earlier: str
    new: tuple[str, ...]
    there: tuple[str, ...]
    fixed: tuple[KnownFinding, ...]
    num_compared: int = 0
    num_differing: int = 0
    parting: Parting | None = None
    difference: Difference | None = None
    traces: tuple[Trace, Trace] | None = None


Shows = Callable[[LoopCounterexample], bool]


def draws_of(report: LoopReport) -> tuple[Any, ...]:
    """What decides which scenario has which number, and how it is run."""
    settings = report.settings
    return settings.seed, settings.mode, settings.large_every, search_code()


def earlier_of(report: LoopReport, behaviour: Behaviour | None) -> Earlier:
    """A search that was just made, as one to compare with."""
    findings = tuple(
        KnownFinding(found.finding.claim, found.finding.mechanism, found.finding.fingerprint)
        for found in report.counterexamples
    )
    return Earlier(report.target, findings, draws_of(report), behaviour)


def load_earlier(path: Path) -> Earlier:
    """The search that ``residency check --level loop --json`` wrote.

    Raises:
        InputError: the file cannot be read, or holds something else.
    """
    wanted = "give what `residency check --level loop --json` wrote"
    results = load(path)
    if results.kind != "check-runs":
        raise InputError(f"{path}: holds the results of {results.kind}; {wanted}")
    if len(results.targets) != 1:
        raise InputError(f"{path}: holds the checks of several vLLMs; give that of one")
    (checked,) = results.targets
    findings = tuple(
        KnownFinding(violation.claim, violation.mechanism, violation.fingerprint)
        for violation in checked.violations
    )
    settings = results.settings
    try:
        draws = (
            int(settings["seed"]),
            str(settings["mode"]),
            int(settings["large_every"]),
            str(settings.get("code", "")),
        )
        behaviour = _behaviour(checked.details.get("behaviour"))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{path}: not a check of the loop ({described(error)}); {wanted}"
        ) from None
    return Earlier(checked.target, findings, draws, behaviour)


def _behaviour(data: Any) -> Behaviour | None:
    if data is None:
        return None
    behaviour = Behaviour()
    for runner in RUNNERS:
        digests = data["digests"].get(runner)
        if digests is not None:
            behaviour.digests[runner] = [None if d is None else str(d) for d in digests]
            behaviour.broken[runner] = [int(number) for number in data["broken"].get(runner, ())]
    return behaviour


def behaviour_to_json(behaviour: Behaviour) -> dict[str, Any]:
    """Digests of all runs, and the numbers of those with a broken claim."""
    return {"digests": behaviour.digests, "broken": behaviour.broken}


def compare_findings(
    report: LoopReport,
    earlier: Earlier,
    shown_earlier: Mapping[str, bool],
    shown_now: Mapping[str, bool],
) -> Compared:
    """Sort findings into new, there and fixed.

    A fault may be found with another smallest scenario, and so with another fingerprint, when other
    faults come or go. So where the other side was asked, its answer counts.

    Args:
        earlier: what it is compared with.
        shown_earlier: by fingerprint, whether the earlier vLLM shows a finding of this search on
            its own scenario; only those that were asked.
        shown_now: the same of the earlier search's findings on the vLLM of this one.
    """
    earlier_fingerprints = {finding.fingerprint for finding in earlier.findings}
    found = [example.finding.fingerprint for example in report.counterexamples]
    there = [f for f in found if f in earlier_fingerprints or shown_earlier.get(f, False)]
    fixed = [
        finding
        for finding in earlier.findings
        if finding.fingerprint not in found and not shown_now.get(finding.fingerprint, False)
    ]
    new = [f for f in found if f not in there]
    return Compared(earlier.target, tuple(new), tuple(there), tuple(fixed))


def first_parting(now: Behaviour, before: Behaviour) -> tuple[int, int, Parting | None]:
    """Runs compared, runs that differ, and the first that differs.

    Where some differ without a broken claim, the first of those.
    """
    compared = differing = 0
    plain: Parting | None = None
    broken: Parting | None = None
    runners = [r for r in RUNNERS if r in now.digests and r in before.digests]
    length = max((min(len(now.digests[r]), len(before.digests[r])) for r in runners), default=0)
    bad: dict[Runner, set[int]] = {
        r: {*now.broken.get(r, ()), *before.broken.get(r, ())} for r in runners
    }
    for number in range(length):
        for runner in runners:
            digest_now, digest_before = (_at(b.digests[runner], number) for b in (now, before))
            if digest_now is None or digest_before is None:
                continue
            compared += 1
            if digest_now == digest_before:
                continue
            differing += 1
            if number in bad[runner]:
                broken = broken or Parting(number, runner, True)
            else:
                plain = plain or Parting(number, runner, False)
    return compared, differing, plain or broken


def _at(digests: Sequence[str | None], number: int) -> str | None:
    return digests[number] if number < len(digests) else None


def difference_of(earlier: Trace, now: Trace) -> Difference | None:
    """Where two runs first differ; a run that was stopped says nothing of what follows."""
    before, after = earlier.steps, now.steps
    if earlier.ending == "stopped":
        after = after[: len(before)]
    if now.ending == "stopped":
        before = before[: len(after)]
    return first_difference(before, after)


def code_against(report: LoopReport, compared: Compared) -> int:
    """The exit code: only a new violation is one, and only what is known to hold passes."""
    new = set(compared.new)
    verdicts = [
        Verdict.HELD
        if result.verdict is Verdict.REFUTED and not new & set(result.fingerprints)
        else result.verdict
        for result in report.results
        if result.verdict is not None
    ]
    return exit_code(verdicts)
