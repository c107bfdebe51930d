"""What a check was asked for, and what it found."""

from __future__ import annotations

from dataclasses import dataclass, field

from impl.tensors import TensorSettings
from proofs.results.outcome import Outcome
from proofs.search.functions.parts import CLAIMS_OF_PART, CheckedPart
from spec.claims.texts import LOOP_CLAIMS, function_claim
from spec.errors import InputError
from spec.functions.findings import Finding
from spec.verdict import Verdict

DEFAULT_EXAMPLES = 300
ALL_PARTS: tuple[CheckedPart, ...] = tuple(CLAIMS_OF_PART)


@dataclass(frozen=True)
class CheckSettings:
    """What to check and how hard.

    Attributes:
        parts: parts to check, in the order of the report.
        claims: ids of the claims to check; ``None`` for all.
        examples: cases drawn for each family of parts.
        seed: the same seed draws the same cases.
        tensors: device, dtype and hidden size of the tensors.
    """

    parts: tuple[CheckedPart, ...] = ALL_PARTS
    claims: tuple[str, ...] | None = None
    examples: int = DEFAULT_EXAMPLES
    seed: int = 0
    tensors: TensorSettings = field(default_factory=TensorSettings)

    def claims_of(self, part: CheckedPart) -> tuple[str, ...]:
        """The chosen claims that the part can contradict."""
        return tuple(
            claim for claim in CLAIMS_OF_PART[part] if self.claims is None or claim in self.claims
        )

    def validate(self) -> None:
        """Check that there is something to do.

        Raises:
            InputError: an unknown claim, no examples, a device that does not exist, or claims that
                none of the parts can contradict.
        """
        for claim in self.claims or ():
            if claim in LOOP_CLAIMS and claim not in _checked_claims():
                raise InputError(
                    f"claim {claim!r} is about whole runs, not single functions; "
                    "`residency check --level loop` checks it"
                )
            function_claim(claim)
        if self.examples < 1:
            raise InputError(f"{self.examples} examples check nothing; ask for at least 1")
        self.tensors.require_device()


def _checked_claims() -> set[str]:
    return {claim for claims in CLAIMS_OF_PART.values() for claim in claims}


@dataclass(frozen=True)
class CheckReport:
    """Everything a check found.

    Attributes:
        results: one for each claim and part.
        findings: the smallest case of each violation.
        interrupted: the check was stopped; ``results`` holds what was known by then.
    """

    target: str
    settings: CheckSettings
    results: tuple[Outcome, ...]
    findings: tuple[Finding, ...]
    interrupted: bool = False

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Verdicts of everything that ran."""
        return tuple(result.verdict for result in self.results if result.verdict is not None)
