"""The books of a release on symbolic sizes, from every initial book of up to three entries.

The monitor that judges recorded runs judges these too: it runs inside the exploration, on the same
symbolic sizes, and its comparisons fork the run like those of the code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import z3

from proofs.source.ask.piece import Piece, Question, settle, unmodelled
from proofs.source.ask.question import number_in
from proofs.source.code.book_calls import run_book
from proofs.source.code.release import ReleaseSource
from proofs.source.code.source_target import SourceTarget
from proofs.source.functions.book_programs import Program
from proofs.symbolic.exploration import Exploration
from proofs.symbolic.integers import NotModelled, SymbolicInt
from proofs.symbolic.tree import Tree
from spec.claims.texts import function_claim
from spec.functions.cases import BookCase, Case
from spec.functions.findings import Finding
from spec.monitor.functions.book_operations import check_book
from spec.record.feature import Feature

CLAIMS = (
    "slots-conserved",
    "held-until-last-use",
    "evicted-not-live",
    "released",
    "book-exact",
    "no-error",
)
UNLIKE_CONTENTS_CLAIMS = ("slots-conserved", "no-error")
ENCODER_DECODER_CLAIMS = ("slots-conserved", "book-exact", "no-error")


@dataclass(frozen=True)
class _Sized:
    """A feature whose rows are symbolic: all that a book and the monitor read of it."""

    identifier: str
    num_rows: SymbolicInt


def _assumptions(claim_id: str, program: Program) -> tuple[str, ...]:
    assumptions = function_claim(claim_id).assumptions
    if program.content_is_hashed:
        return assumptions
    return tuple(name for name in assumptions if name != "hash-is-content")


def _second(identifier: str) -> str:
    return f"{identifier} of the second request"


def book_questions(program: Program) -> list[Question]:
    """Every claim on the decoder-only book, for one program."""
    if program.content_is_hashed:
        return _questions(program, "book", CLAIMS)
    return _questions(program, "book of unlike contents", UNLIKE_CONTENTS_CLAIMS)


def encoder_decoder_questions(program: Program) -> list[Question]:
    """Every claim on the encoder-decoder book, for one program."""
    return _questions(program, "encoder_decoder_book", ENCODER_DECODER_CLAIMS)


def _questions(program: Program, part: str, claims: Sequence[str]) -> list[Question]:
    return [
        Question(claim_id, part, program.words, _assumptions(claim_id, program))
        for claim_id in claims
    ]


def book_pieces(release: ReleaseSource, name: str, program: Program) -> list[Piece]:
    """What :func:`book_questions` asks, on every path."""
    return _pieces(release, name, program, book_questions(program))


def encoder_decoder_pieces(release: ReleaseSource, name: str, program: Program) -> list[Piece]:
    """What :func:`encoder_decoder_questions` asks, on every path."""
    return _pieces(release, name, program, encoder_decoder_questions(program))


def _pieces(
    release: ReleaseSource, name: str, program: Program, questions: Sequence[Question]
) -> list[Piece]:
    part = questions[0].part
    exploration = Exploration()
    cache_size = exploration.integer("cache_size")
    names = sorted(set(program.identifiers))
    rows = {h: exploration.integer(f"rows_{h}") for h in names}
    if not program.content_is_hashed:
        rows |= {_second(h): exploration.integer(f"rows_{h}_of_the_second") for h in names}
    exploration.assume(*(size.term >= 1 for size in rows.values()))
    exploration.assume(*(size.term <= cache_size.term for size in rows.values()))
    limits = [
        exploration.integer(name)
        for name in ("encoder_budget", "num_rows_chosen")
        if program.limited is not None
    ]
    exploration.assume(*(limit.term >= 0 for limit in limits))
    is_encoder_decoder = part == "encoder_decoder_book"

    def case_with(
        feature: Callable[[str, SymbolicInt], object], number: Callable[[SymbolicInt], object]
    ) -> BookCase:
        first = tuple(feature(h, rows[h]) for h in program.identifiers)
        second = tuple(feature(h, rows.get(_second(h), rows[h])) for h in program.identifiers)
        operations = list(program.operations)
        if program.limited is not None:
            budget, chosen = (cast("int", number(limit)) for limit in limits)
            operations[program.limited] = replace(
                operations[program.limited], encoder_budget=budget, num_rows_chosen=chosen
            )
        return BookCase(
            cast("int", number(cache_size)),
            cast("tuple[tuple[Feature, ...], ...]", (first, second)),
            tuple(operations),
            is_encoder_decoder,
            program.content_is_hashed,
        )

    symbolic = case_with(_Sized, lambda size: size)

    def run() -> frozenset[str]:
        observation = run_book(release, symbolic)
        return frozenset(found.claim for found in check_book(symbolic, observation, name))

    try:
        tree: Tree[frozenset[str]] = exploration.explore(run)
    except NotModelled as reason:
        return [unmodelled(question, reason) for question in questions]
    target = SourceTarget(release, name)

    def replay(model: z3.ModelRef, claim_id: str) -> tuple[Case, Sequence[Finding]]:
        def number(value: SymbolicInt) -> int:
            return number_in(model, value.term)

        whole = _laid_out(case_with(lambda h, size: Feature(0, number(size), h), number))
        for count in range(1, len(program.operations) + 1):
            case = replace(whole, operations=whole.operations[:count])
            found = check_book(case, target.book(case), f"{name} {part}")
            if any(finding.claim == claim_id for finding in found):
                return case, found
        return whole, ()

    return settle(
        [(question, partial(_spares, question.claim)) for question in questions],
        exploration,
        tree,
        sizes=[size.term for size in (cache_size, *rows.values(), *limits)],
        replay=replay,
    )


def _laid_out(case: BookCase) -> BookCase:
    """The case with each request's features one after the other, as a prompt has them."""
    requests: list[tuple[Feature, ...]] = []
    for request in case.requests:
        features: list[Feature] = []
        for feature in request:
            offset = features[-1].end if features else 0
            features.append(replace(feature, offset=offset))
        requests.append(tuple(features))
    return replace(case, requests=tuple(requests))


def _spares(claim_id: str, violated: frozenset[str]) -> bool:
    return claim_id not in violated
