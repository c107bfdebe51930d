"""A claim that a trace contradicts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class LoopFinding:
    """A violated claim, with where and by which values.

    Attributes:
        claim: id of the claim.
        pass_index: the pass in which it shows.
        request: the request concerned, or ``None``.
        feature: index of the feature concerned, or ``None``.
        observed: what the target did, in words and numbers.
        expected: what the claim asks for.
        mechanism: the guard or duty that failed, independent of all numbers and names.
        loop: first and last pass of the loop of a run that stands still or turns in a circle.
        shape: what the smallest scenario still needs, once it was shrunk; empty before.
    """

    claim: str
    pass_index: int
    request: int | None
    feature: int | None
    observed: str
    expected: str
    mechanism: str
    loop: tuple[int, int] | None = None
    shape: str = ""

    __pydantic_config__ = {"extra": "forbid", "strict": True}

    @property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits: claim, mechanism and shape, whatever the numbers."""
        return fingerprint(self.claim, f"{self.mechanism}\n{self.shape}")


def fingerprint(claim: str, mechanism: str) -> str:
    """Stable identity of a fault: it depends on the claim and the mechanism only."""
    return hashlib.sha256(f"{claim}\n{mechanism}".encode()).hexdigest()[:12]
