"""Check every claim on the functions of a target with cases that hypothesis draws.

Cases are judged as they are drawn. To make a violation small, the same cases are drawn again from
the same seed, hypothesis shrinks the first that shows it, and the reducer leaves out what is left.
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
from impl.time_limit import SECONDS_OF_A_RUN, TimeLimitError, time_limit
from proofs.describe.cases import describe_case
from proofs.jobs.progress import ReportProgress
from proofs.results.outcome import Outcome
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
from proofs.search.functions.results import CheckReport, CheckSettings
from proofs.search.two_phases import Limits, Search
from spec.errors import InputError, NoVerdictError, described
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
        check_settings: what to check on it, and how hard.
        should_stop: asked before every case. When it says yes, or Ctrl-C comes, the check ends
            early, and the report holds what was found so far.

    Raises:
        InputError: the settings ask for nothing that can be done.
        NoVerdictError: the target is gone, so that nothing more can be asked of it.
    """
    check_settings.validate()
    search: Search[Violation, Finding] = Search(
        Limits(should_stop=should_stop), report_progress, "case"
    )
    check = _Check(target, check_settings, search)
    ending = search.run(check.collect, check.shrink, lambda key: f"{key[1]}, {key[0]}")
    findings = tuple(search.found.values())
    return CheckReport(target.name, check_settings, check.results(), findings, ending.interrupted)


class _Check:
    """What is drawn and how it is judged: counts, and findings by violation."""

    def __init__(
        self,
        target: FunctionTarget,
        check_settings: CheckSettings,
        search: Search[Violation, Finding],
    ) -> None:
        self._target = target
        self._settings = check_settings
        self._search = search
        self._missing = {part: why_missing(target, part) for part in check_settings.parts}
        self._family_of: dict[CheckedPart, Family] = {}
        self._seen: dict[tuple[CheckedPart, Case], tuple[Finding, ...]] = {}
        self._failed: dict[CheckedPart, str] = {}
        self._refused: dict[CheckedPart, str] = {}
        self._finished: set[CheckedPart] = set()
        self._endless: set[CheckedPart] = set()
        self._gone: NoVerdictError | None = None
        self._cases: Counter[CheckedPart] = Counter()
        self._premises: Counter[tuple[CheckedPart, str]] = Counter()

    def collect(self) -> None:
        """Draw each family's cases and note every violation."""
        work = [(family, parts) for family in FAMILIES if (parts := self._parts_of(family))]
        report_progress = self._search.report_progress
        for index, (family, parts) in enumerate(work):
            report_progress(f"cases of {family.name}", index, len(work))
            self._find(family, partial(self._note, parts))
            self._finished.update(parts)
        report_progress("cases drawn", len(work), len(work))

    def shrink(
        self, violation: Violation, finding: Finding, may_try: Callable[[], bool]
    ) -> Finding:
        """The violation in the smallest case that hypothesis and the reducer come to."""
        part, _, _ = violation
        if part in self._endless:
            return finding
        is_violated = partial(self._is_violated, violation)
        case = self._find(self._family_of[part], is_violated) or finding.function_case
        smallest = reduce_case(case, is_violated, may_try)
        return self._violated(violation, smallest) or finding

    def results(self) -> tuple[Outcome, ...]:
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
            if self._gone is not None:  # It tries once more what raised, and finds that odd.
                raise self._gone from None
            for part in family.parts:
                self._failed.setdefault(part, f"the search failed: {described(error)}")
            return None

    def _note(self, parts: Sequence[CheckedPart], case: Case) -> bool:
        self._search.limits.stop_if_asked()
        for part in parts:
            if part in self._failed:
                continue
            try:
                found = self._findings(part, case)
            except InputError as error:
                self._refused.setdefault(part, str(error))
                continue
            except TimeLimitError as error:
                self._failed[part] = f"{error}, on {describe_case(case)}"
                self._endless.add(part)
                continue
            except NoVerdictError:
                raise
            except Exception as error:
                self._failed[part] = described(error)
                continue
            self._cases[part] += 1
            for claim in self._settings.claims_of(part):
                self._premises[part, claim] += premise_happens(claim, case)
            for finding in found:
                violation = part, finding.claim, finding.mechanism
                smallest = self._search.found.get(violation)
                if smallest is None or size(case) < size(smallest.function_case):
                    self._search.found[violation] = finding
        return False

    def _is_violated(self, violation: Violation, case: Case) -> bool:
        self._search.limits.stop_if_asked()
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
            try:
                with time_limit(f"{self._target.name} {part}", SECONDS_OF_A_RUN):
                    found = findings_on(self._target, part, case, self._settings.tensors)
            except TimeLimitError:
                raise
            except NoVerdictError as error:
                self._gone = error
                raise
            wanted = self._settings.claims_of(part)
            for finding in found:
                assert part in WITHOUT or finding.claim in CLAIMS_OF_PART[part]
            self._seen[key] = tuple(finding for finding in found if finding.claim in wanted)
        return self._seen[key]

    def _result(self, claim: str, part: CheckedPart) -> Outcome:
        cases, premises = self._cases[part], self._premises[part, claim]
        fingerprints = tuple(
            finding.fingerprint
            for (found_part, found_claim, _), finding in self._search.found.items()
            if (found_part, found_claim) == (part, claim)
        )
        reason = self._missing[part]
        if reason is not None:
            verdict = Verdict.VACUOUS
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
        return Outcome(
            claim,
            part,
            verdict,
            cases,
            premises,
            fingerprints,
            reason,
            without=WITHOUT.get(part),
        )
