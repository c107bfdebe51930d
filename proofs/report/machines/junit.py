"""What became of each claim, as a JUnit file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from proofs.describe.visible import visible
from spec.verdict import Verdict


@dataclass(frozen=True)
class Outcome:
    """One claim on one part.

    Attributes:
        claim: id of the claim.
        part: what it was checked on.
        verdict: ``None`` where the target has no such part.
        text: what was seen, or why there is no better verdict; lines.
    """

    claim: str
    part: str
    verdict: Verdict | None
    text: tuple[str, ...] = ()


def to_junit(targets: Iterable[tuple[str, Iterable[Outcome]]]) -> str:
    """The outcomes on each target as JUnit XML.

    A claim that holds passes, one that the target cannot be asked about is skipped, ``ERROR`` is an
    error, and all else a failure.
    """
    document: Any = JUnitXml("residency")
    for target, outcomes in targets:
        # A file in XML cannot hold every character, not even as an escape.
        suite = TestSuite(visible(target))
        for outcome in outcomes:
            suite.add_testcase(_case(outcome))
        document.add_testsuite(suite)
    document.update_statistics()
    text: bytes = document.tostring()
    return text.decode()


def _case(outcome: Outcome) -> TestCase:
    case = TestCase(visible(outcome.part), visible(outcome.claim))
    text = "\n".join(visible(line, None) for line in outcome.text)
    verdict = outcome.verdict
    if verdict is None:
        case.result = [Skipped(text)]
    elif not verdict.passes:
        # A failure is something that was seen; whatever could not be judged is an error.
        kind = Failure if verdict is Verdict.REFUTED else Error
        told = f"{verdict.value}: {text}" if text else verdict.value
        case.result = [kind(told, verdict.value)]
    return case
