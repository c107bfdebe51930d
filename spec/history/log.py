"""Where the monitors of the loop write what they find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import TypeAlias

from spec.record.run_findings import LoopFinding

Contradiction: TypeAlias = tuple[str, Hashable, str]
"""Claim, what it is about, and mechanism."""

_CLAIM = 0


class FindingLog:
    """Findings of the step that is being looked at, and how often each claim's premise happened.

    A contradiction that stays (a slot count that is off, a reference that is never dropped) is
    found when it begins, not again in every later step. One that comes about in another way is
    another one, even if it is about the same.

    Attributes:
        premises: for each claim id, how often there was something to check.
    """

    def __init__(self) -> None:
        self.premises: Counter[str] = Counter()
        self._pass_index = 0
        self._found: list[LoopFinding] = []
        self._standing: set[Contradiction] = set()
        self._seen_now: set[Contradiction] = set()

    def begin(self, pass_index: int) -> None:
        """Start a step of the given pass."""
        self._pass_index = pass_index

    def add(
        self,
        claim: str,
        mechanism: str,
        *,
        observed: str,
        expected: str,
        request: int | None = None,
        feature: int | None = None,
    ) -> None:
        """Note a finding."""
        self._found.append(
            LoopFinding(claim, self._pass_index, request, feature, observed, expected, mechanism)
        )

    def add_standing(
        self,
        claim: str,
        subject: Hashable,
        mechanism: str,
        *,
        observed: str,
        expected: str,
        request: int | None = None,
        feature: int | None = None,
    ) -> None:
        """Note a finding that is news only if it did not stand before, by the same mechanism."""
        key = (claim, subject, mechanism)
        self._seen_now.add(key)
        if key not in self._standing:
            self._standing.add(key)
            self.add(
                claim,
                mechanism,
                observed=observed,
                expected=expected,
                request=request,
                feature=feature,
            )

    def mechanism_of(self, claim: str, subject: Hashable) -> str | None:
        """How the contradiction about the subject came about, where one stands.

        A mechanism that is told by the step in which it happened cannot be told again later.
        """
        for standing_claim, standing_subject, mechanism in self._standing:
            if (standing_claim, standing_subject) == (claim, subject):
                return mechanism
        return None

    def settle(self, *claims: str) -> None:
        """End a check of the claims: contradictions that it did not meet again are over."""
        if self._standing:
            self._standing = {
                key for key in self._standing if key in self._seen_now or key[_CLAIM] not in claims
            }
            self._seen_now.clear()

    def take(self) -> tuple[LoopFinding, ...]:
        """The step's findings; the next step begins with none."""
        if not self._found:
            return ()
        found, self._found = tuple(self._found), []
        return found
