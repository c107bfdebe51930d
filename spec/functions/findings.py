"""A finding: one claim that an observation contradicts."""

from __future__ import annotations

from dataclasses import dataclass

from spec.functions.cases import AnyCase, Case, SchedulingCase
from spec.record.run_findings import fingerprint
from spec.record.scenario import Scenario


@dataclass(frozen=True)
class Finding:
    """A violated claim, with the values that contradict.

    Attributes:
        claim: id of the claim.
        case: the input that shows it.
        observed: what the target did, in words and numbers.
        expected: what the claim asks for.
        target: name of the target, with its runner or part: ``vllm 0.23.0 V1``.
        mechanism: the guard or duty that failed, independent of the numbers of the case.
        fingerprint: twelve hexadecimal digits that stay the same for the same claim and mechanism,
            on whatever target and with whatever numbers.
    """

    claim: str
    case: AnyCase
    observed: str
    expected: str
    target: str
    mechanism: str
    fingerprint: str

    @property
    def function_case(self) -> Case:
        """The case, of a finding on a single function of a target.

        Raises:
            TypeError: the finding is about scheduling or whole passes.
        """
        if isinstance(self.case, (SchedulingCase, Scenario)):
            raise TypeError(f"a finding on {self.claim} about {self.case.kind} is on no function")
        return self.case


def finding(
    claim: str, case: AnyCase, *, observed: str, expected: str, target: str, mechanism: str
) -> Finding:
    """A finding with its fingerprint."""
    return Finding(
        claim, case, observed, expected, target, mechanism, fingerprint(claim, mechanism)
    )
