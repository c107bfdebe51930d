"""Check every claim on a target with drawn cases, and shrink every violation on its own.

Two phases. *Collect* draws the cases and notes every violated claim with its mechanism, so that one
violation hides no other. *Shrink* draws the same cases again from the same seed, for one violation
at a time, and lets hypothesis make it small.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import TypeAlias

from hypothesis import HealthCheck, Phase, Verbosity, find, settings
from hypothesis.errors import HypothesisException, NoSuchExample

from impl.target import FunctionTarget
from proofs.jobs.progress import ReportProgress
from proofs.search.functions.parts import (
    CLAIMS_OF_PART,
    FAMILIES,
    WITHOUT,
    CheckedPart,
    Family,
    findings_on,
    why_missing,
)
from proofs.search.functions.premises import premise_happens
from proofs.search.functions.reduce import reduce_case, size
from proofs.search.functions.results import CheckReport, CheckSettings, Result
from spec.errors import InputError
from spec.functions.cases import Case
from spec.functions.findings import Finding
from spec.verdict import Verdict

Violation: TypeAlias = tuple[CheckedPart, str, str]
"""Part, claim and mechanism: findings with the same three are one."""


def run_check(
    target: FunctionTarget,
    check_settings: CheckSettings,
    report_progress: ReportProgress | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> CheckReport:
    """Check a target.

    Args:
        target: what to check.
        check_settings: what to check on it, and how hard.
        report_progress: told of every step.
        should_stop: asked before every case. When it says yes, or Ctrl-C comes, the check ends
            early, and the report holds what was found so far.

    Raises:
        InputError: the settings ask for nothing that can be done.
    """
    check_settings.validate()
    check = _Check(target, check_settings, report_progress or _silent, should_stop or _never)
    interrupted = False
    try:
        check.collect()
        check.shrink()
    except KeyboardInterrupt:
        interrupted = True
    return CheckReport(
        target.name, check_settings, check.results(), tuple(check.smallest.values()), interrupted
    )


def _silent(activity: str, done: int, total: int) -> None:
    """Report no progress."""


def _never() -> bool:
    """Do not stop."""
    return False


class _Check:
    """One run: counts and findings as they come in."""

    def __init__(
        self,
        target: FunctionTarget,
        check_settings: CheckSettings,
        report_progress: ReportProgress,
        should_stop: Callable[[], bool],
    ) -> None:
        self._target = target
        self._settings = check_settings
        self._report_progress = report_progress
        self._should_stop = should_stop
        self._missing = {part: why_missing(target, part) for part in check_settings.parts}
        self._family_of: dict[CheckedPart, Family] = {}
        self._seen: dict[tuple[CheckedPart, Case], tuple[Finding, ...]] = {}
        self._failed: dict[CheckedPart, str] = {}
        self._refused: dict[CheckedPart, str] = {}
        self._finished: set[CheckedPart] = set()
        self._cases: Counter[CheckedPart] = Counter()
        self._premises: Counter[tuple[CheckedPart, str]] = Counter()
        self.smallest: dict[Violation, Finding] = {}

    def collect(self) -> None:
        """Draw each family's cases and note every violation."""
        work = [(family, parts) for family in FAMILIES if (parts := self._parts_of(family))]
        for index, (family, parts) in enumerate(work):
            self._report_progress(f"cases of {family.name}", index, len(work))
            self._find(family, partial(self._note, parts))
            self._finished.update(parts)
        self._report_progress("cases drawn", len(work), len(work))

    def shrink(self) -> None:
        """Replace the case of each violation by the smallest that hypothesis can make."""
        violations = list(self.smallest)
        for index, violation in enumerate(violations):
            part, claim, _ = violation
            self._report_progress(f"smallest case: {claim}, {part}", index, len(violations))
            is_violated = partial(self._is_violated, violation)
            known = self.smallest[violation].function_case
            case = self._find(self._family_of[part], is_violated) or known
            finding = self._violated(violation, reduce_case(case, is_violated))
            if finding is not None:
                self.smallest[violation] = finding
        self._report_progress("smallest cases found", len(violations), len(violations))

    def results(self) -> tuple[Result, ...]:
        """One result for each claim and part, in the order of the settings."""
        return tuple(
            self._result(claim, part)
            for part in self._settings.parts
            for claim in self._settings.claims_of(part)
        )

    def _parts_of(self, family: Family) -> tuple[CheckedPart, ...]:
        parts = tuple(
            part
            for part in family.parts
            if part in self._settings.parts
            and self._missing[part] is None
            and self._settings.claims_of(part)
        )
        self._family_of.update(dict.fromkeys(parts, family))
        return parts

    def _find(self, family: Family, condition: Callable[[Case], bool]) -> Case | None:
        """The smallest drawn case that meets the condition; ``None`` when no case does.

        Every call with the same family draws the same cases up to the first that meets the
        condition. A target that answers one case in two ways has no smallest case.
        """
        try:
            return find(
                family.cases(),
                condition,
                settings=settings(
                    max_examples=self._settings.examples,
                    phases=[Phase.generate, Phase.shrink],
                    database=None,
                    deadline=None,
                    derandomize=False,
                    backend="hypothesis",
                    verbosity=Verbosity.quiet,
                    suppress_health_check=list(HealthCheck),
                ),
                random=Random(f"{self._settings.seed} {family.name}"),  # noqa: S311 - no secret
            )
        except NoSuchExample:
            return None
        except HypothesisException as error:
            for part in family.parts:
                self._failed.setdefault(part, f"the search failed: {error}")
            return None

    def _note(self, parts: Sequence[CheckedPart], case: Case) -> bool:
        self._stop_if_asked()
        for part in parts:
            if part in self._failed:
                continue
            try:
                found = self._findings(part, case)
            except InputError as error:
                self._refused.setdefault(part, str(error))
                continue
            except Exception as error:
                self._failed[part] = f"{type(error).__name__}: {error}"
                continue
            self._cases[part] += 1
            for claim in self._settings.claims_of(part):
                self._premises[part, claim] += premise_happens(claim, case)
            for finding in found:
                violation = part, finding.claim, finding.mechanism
                known = self.smallest.get(violation)
                if known is None or size(case) < size(known.function_case):
                    self.smallest[violation] = finding
        return False

    def _stop_if_asked(self) -> None:
        if self._should_stop():
            raise KeyboardInterrupt

    def _is_violated(self, violation: Violation, case: Case) -> bool:
        self._stop_if_asked()
        return self._violated(violation, case) is not None

    def _violated(self, violation: Violation, case: Case) -> Finding | None:
        part, claim, mechanism = violation
        for finding in self._findings(part, case):
            if (finding.claim, finding.mechanism) == (claim, mechanism):
                return finding
        return None

    def _findings(self, part: CheckedPart, case: Case) -> tuple[Finding, ...]:
        key = part, case
        if key not in self._seen:
            found = findings_on(self._target, part, case, self._settings.tensors)
            wanted = self._settings.claims_of(part)
            for finding in found:
                assert part in WITHOUT or finding.claim in CLAIMS_OF_PART[part]
            self._seen[key] = tuple(finding for finding in found if finding.claim in wanted)
        return self._seen[key]

    def _result(self, claim: str, part: CheckedPart) -> Result:
        cases, premises = self._cases[part], self._premises[part, claim]
        fingerprints = tuple(
            finding.fingerprint
            for (found_part, found_claim, _), finding in self.smallest.items()
            if (found_part, found_claim) == (part, claim)
        )
        reason = self._missing[part]
        verdict: Verdict | None
        if reason is not None:
            verdict = None
        elif fingerprints:
            verdict = Verdict.REFUTED
        elif part in self._failed:
            verdict, reason = Verdict.ERROR, self._failed[part]
        elif part not in self._finished:
            verdict, reason = Verdict.UNKNOWN, "interrupted"
        elif not cases:
            verdict, reason = Verdict.ERROR, self._refused.get(part, "no case was drawn")
        elif not premises:
            verdict, reason = Verdict.VACUOUS, "the premise never happened"
        else:
            verdict = Verdict.HELD
        return Result(claim, part, verdict, cases, premises, fingerprints, reason)
