"""What became of each claim, as a JUnit file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from proofs.describe.visible import visible
from proofs.results.outcome import Checked, Outcome
from proofs.results.violation import Violation
from spec.verdict import Verdict

_THERE_BEFORE = "was there before"


def to_junit(targets: Sequence[Checked]) -> str:
    """The outcomes on each target as JUnit XML.

    A claim that holds passes, one that the target cannot be asked about is skipped, and so is one
    that is only broken as it was before a change; ``REFUTED`` is a failure, and all else an error.
    """
    document: Any = JUnitXml("residency")
    for checked in targets:
        # A file in XML cannot hold every character, not even as an escape.
        suite = TestSuite(visible(checked.target))
        for outcome in checked.outcomes:
            suite.add_testcase(_case(outcome, checked.violations))
        document.add_testsuite(suite)
    document.update_statistics()
    text: bytes = document.tostring()
    return text.decode()


def _case(outcome: Outcome, violations: Sequence[Violation]) -> TestCase:
    seconds = None if outcome.proof is None else round(outcome.proof.milliseconds / 1000, 3)
    case = TestCase(visible(outcome.part, None), visible(outcome.claim), seconds)
    shown = [violation for violation in violations if violation.fingerprint in outcome.fingerprints]
    text = "\n".join(visible(line, None) for line in _lines(outcome, shown))
    verdict = outcome.verdict
    is_old = bool(shown) and not any(violation.is_new for violation in shown)
    if verdict is None:
        case.result = [Skipped(text)]
    elif verdict is Verdict.REFUTED and is_old:
        case.result = [Skipped(f"{_THERE_BEFORE}\n{text}")]
    elif not verdict.passes:
        # A failure is something that was seen; whatever could not be judged is an error.
        kind = Failure if verdict is Verdict.REFUTED else Error
        message = f"{verdict.value}: {text}" if text else verdict.value
        case.result = [kind(message, verdict.value)]
    return case


def _lines(outcome: Outcome, violations: Sequence[Violation]) -> Iterator[str]:
    for violation in violations:
        if len(violations) > 1:
            yield f"on {violation.target}:"
        yield f"{violation.mechanism} [{violation.fingerprint}]"
        yield f"smallest: {violation.smallest}"
        yield f"observed: {violation.observed}"
        yield f"expected: {violation.expected}"
    if outcome.reason is not None:
        yield from outcome.reason.split("\n")
