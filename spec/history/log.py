"""Where the monitors of the loop write what they find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from spec.record.run_findings import LoopFinding


class FindingLog:
    """Findings of the step that is being looked at, and how often each claim's premise happened.

    A contradiction that stays (a slot count that is off, a reference that is never dropped) is
    found when it begins, not again in every later step.

    Attributes:
        premises: for each claim id, how often there was something to check.
    """

    def __init__(self) -> None:
        self.premises: Counter[str] = Counter()
        self._pass_index = 0
        self._found: list[LoopFinding] = []
        self._standing: set[Hashable] = set()
        self._seen_now: set[Hashable] = set()

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
        """Note a finding that is news only if the same claim about the subject held before."""
        key = (claim, subject)
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

    def settle(self, *claims: str) -> None:
        """End a check of the claims: contradictions that it did not meet again are over."""
        if self._standing:
            self._standing = {
                key
                for key in self._standing
                if key in self._seen_now or not (isinstance(key, tuple) and key[0] in claims)
            }
            self._seen_now.clear()

    def take(self) -> tuple[LoopFinding, ...]:
        """The step's findings; the next step begins with none."""
        if not self._found:
            return ()
        found, self._found = tuple(self._found), []
        return found
