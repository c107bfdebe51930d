"""The ledger: all that closes each claim, as plain data.

A claim is closed by proofs or by the reason why only search covers it, by a witness that was run
and whose premise was seen, by the faults that break it in every engine, by its assumptions, each
with what breaks without it, and by tests. :mod:`proofs.ledger.build` fills the records,
:mod:`proofs.ledger.gaps` says what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from spec.claims.texts import Kind

Level: TypeAlias = Literal["functions", "loop"]
LEVELS: tuple[Level, ...] = ("functions", "loop")
"""Where claims are checked: on calls of single functions, and on the running loop."""

Room: TypeAlias = Literal["rules", "relation", "progress"]
ROOMS: tuple[Room, ...] = ("rules", "relation", "progress")
"""What a proof is about: single rules, the transition relation, or that something happens."""


@dataclass(frozen=True)
class Witnessed:
    """A claim's witness, run on the reference.

    Attributes:
        words: the case or scenario, for people.
        premises: how often the claim's premise was seen to happen; the least over both runners.
        violated: claims that the run contradicts, and should not.
    """

    words: str
    premises: int
    violated: tuple[str, ...] = ()


@dataclass(frozen=True)
class Checked:
    """How a claim is checked at one level.

    Attributes:
        level: single functions, or the loop.
        scopes: what is searched there.
        faults: switches that must break it there.
        witness: a case in which its premise happens.
    """

    level: Level
    scopes: tuple[str, ...]
    faults: tuple[str, ...]
    witness: Witnessed | None


@dataclass(frozen=True)
class ClaimRecord:
    """One claim and all that closes it.

    Attributes:
        kind: what sort of property it is.
        not_expected: when it is not expected to hold.
        healthy: which healthy engine could break it on runs, and why none does; empty for a claim
            on functions alone.
        assumptions: ids of what it takes for granted.
        predicates: functions of :mod:`spec.claims.predicates` that state it; a proof of it calls
            one of them.
        proofs: names of obligations that hold for all integers.
        refuted: ablations of those, ``obligation/ablation``: the faults that proofs see.
        why_no_proof: why only search covers it; empty where there are proofs.
        left_to_search: what its proofs leave to search; empty where that is nothing.
        source: parts of a release's source on which it is proved or refuted.
        why_no_source: why on none; empty where there are some.
        checked: by level, how search checks it.
        why_not: why a level is missing; empty where none is.
        explored: scopes in which every state was visited.
        explorer_faults: switches that the exhaustive search sees break it.
        why_not_explored: why in none; empty where there are some, or while nothing was recorded.
        why_no_explorer_fault: why it sees no switch break it; empty where it does.
        tests: tests about it, ``module::function`` or ``module::function[parameter]``.
    """

    id: str
    kind: Kind
    sentence: str
    why: str
    not_expected: str
    healthy: str
    assumptions: tuple[str, ...]
    predicates: tuple[str, ...]
    proofs: tuple[str, ...]
    refuted: tuple[str, ...]
    why_no_proof: str
    left_to_search: str
    source: tuple[str, ...]
    why_no_source: str
    checked: tuple[Checked, ...]
    why_not: str
    explored: tuple[str, ...]
    explorer_faults: tuple[str, ...]
    why_not_explored: str
    why_no_explorer_fault: str
    tests: tuple[str, ...]

    def at(self, level: Level) -> Checked | None:
        """How it is checked at a level; ``None`` if it is not."""
        return next((checked for checked in self.checked if checked.level == level), None)


@dataclass(frozen=True)
class AblationRecord:
    """A variant of an obligation that must be refuted, and the assumptions that it drops."""

    name: str
    drops: tuple[str, ...]


@dataclass(frozen=True)
class ObligationRecord:
    """A proof, the claim it names, and what must be refuted so that it counts.

    One step of an induction is named ``group.invariant.transition``. ``states`` are the claims
    whose predicates its formula calls.
    """

    name: str
    room: Room
    claim: str
    sentence: str
    states: tuple[str, ...]
    ablations: tuple[AblationRecord, ...]

    @property
    def is_step(self) -> bool:
        """Whether it is one step of an induction: it may fail where the claim still holds."""
        return self.name.count(".") > 1


@dataclass(frozen=True)
class FaultRecord:
    """A switch and what it breaks in each engine, or why an engine cannot see it.

    Attributes:
        functions: claims that it breaks on single functions.
        loop: claims that its scenario breaks in the loop.
        may_also_break: further claims that it breaks in other scenarios.
        explorer: claims that the exhaustive search sees it break.
        ablations: variants of proofs that change the guard which the switch changes.
        why_no_functions: why nothing shows on functions; and so on.
    """

    name: str
    functions: tuple[str, ...]
    why_no_functions: str
    loop: tuple[str, ...]
    why_no_loop: str
    may_also_break: tuple[str, ...]
    explorer: tuple[str, ...]
    why_no_explorer: str
    ablations: tuple[str, ...]
    why_no_ablation: str


@dataclass(frozen=True)
class Scope:
    """Something that an engine searches, and the claims that it can contradict."""

    engine: Literal["functions", "loop", "source", "explorer"]
    name: str
    claims: tuple[str, ...]


@dataclass(frozen=True)
class Breaking:
    """A case in which an assumption does not hold.

    Attributes:
        words: the case, and in what it differs from a proper one.
        claim: the claim to see.
        shown: whether it was run and showed what is said of it.
    """

    words: str
    claim: str
    shown: bool


@dataclass(frozen=True)
class AssumptionRecord:
    """An assumption, who rests on it, and what breaks without it.

    Attributes:
        without: what happens otherwise.
        claims: claims that rest on it.
        ablations: ablations of proofs that drop it.
        breaks: claims that are said to break without it.
        traces: cases that were run without it, one for each of those.
    """

    id: str
    sentence: str
    without: str
    claims: tuple[str, ...]
    ablations: tuple[str, ...]
    breaks: tuple[str, ...]
    traces: tuple[Breaking, ...]


@dataclass(frozen=True)
class TestRecord:
    """A test that exists, and a claim that it was found to be about."""

    __test__ = False
    """No test itself."""

    id: str
    claim: str


@dataclass(frozen=True)
class Ledger:
    """Everything.

    Attributes:
        claims: by claim, what closes it.
        assumptions: what is taken for granted.
        scopes: everything that is searched.
        is_explored: whether an exhaustive search was recorded; until then none is asked for.
        tests: tests that exist; ``None`` where nobody looked for them.
    """

    claims: tuple[ClaimRecord, ...]
    assumptions: tuple[AssumptionRecord, ...]
    faults: tuple[FaultRecord, ...]
    obligations: tuple[ObligationRecord, ...]
    scopes: tuple[Scope, ...]
    is_explored: bool
    tests: tuple[TestRecord, ...] | None

    def claim(self, claim_id: str) -> ClaimRecord:
        """The record of a claim.

        Raises:
            KeyError: there is none.
        """
        for record in self.claims:
            if record.id == claim_id:
                return record
        raise KeyError(claim_id)
