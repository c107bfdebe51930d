"""The books of a release on symbolic sizes, from every initial book of up to three entries.

The monitor that judges recorded runs judges these too: it runs inside the exploration, on the same
symbolic sizes, and its comparisons fork the run like those of the code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations, product
from typing import Literal, cast

import z3

from proofs.source.book_code import run_book
from proofs.source.piece import Piece, Question, settle, unmodelled
from proofs.source.release import ReleaseSource
from proofs.source.target import SourceTarget
from proofs.symbolic.exploration import Exploration
from proofs.symbolic.integers import NotModelled, SymbolicInt
from proofs.symbolic.tree import Tree
from spec.cases import BookCase, BookOperation, Case
from spec.claims import claim
from spec.feature import Feature
from spec.findings import Finding
from spec.monitor_book import check_book

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

Status = Literal["unreferenced", "held by the first", "held by the second", "held by both"]
STATUSES: tuple[Status, ...] = (
    "unreferenced",
    "held by the first",
    "held by the second",
    "held by both",
)


@dataclass(frozen=True)
class _Sized:
    """A feature whose rows are symbolic: all that a book and the monitor read of it."""

    identifier: str
    num_rows: SymbolicInt


@dataclass(frozen=True)
class Program:
    """A sequence of operations by two requests that both have the given hashes as features.

    Without ``content_is_hashed`` the second request's rows differ from the first's, whatever its
    hashes say. ``limited`` is the index of a take with a symbolic encoder budget and symbolic rows
    chosen before; the other takes have neither.
    """

    words: str
    identifiers: str
    operations: tuple[BookOperation, ...]
    content_is_hashed: bool = True
    limited: int | None = None


def _build(statuses: Sequence[Status]) -> list[BookOperation]:
    """Reach a book with one entry per status, unreferenced ones oldest first."""
    operations: list[BookOperation] = []
    for index, status in enumerate(statuses):
        holder = 1 if status == "held by the second" else 0
        operations.append(BookOperation("take", holder, index))
        if status == "held by both":
            operations.append(BookOperation("take", 1, index))
    for index, status in enumerate(statuses):
        if status == "unreferenced":
            operations.append(BookOperation("drop", 0, index))
    return operations


def programs() -> Iterator[Program]:
    """Operations of each kind on every initial book of up to three entries.

    A new item is taken on books of up to two, so that there are never more than three features.
    """
    for count in (0, 1, 2):
        for statuses in product(STATUSES, repeat=count):
            yield Program(
                f"[{', '.join(statuses)}] take a new item, then the first again",
                "ABC"[: count + 1],
                (
                    *_build(statuses),
                    BookOperation("take", 0, count),
                    BookOperation("take", 1, 0),
                    BookOperation("end_pass"),
                ),
            )
    for statuses in _LIMITED_ON:
        count, built = len(statuses), _build(statuses)
        yield Program(
            f"[{', '.join(statuses)}] take a new item under limits, then without",
            "ABC"[: count + 1],
            (
                *built,
                BookOperation("take", 1, count),
                BookOperation("take", 0, count),
                BookOperation("end_pass"),
            ),
            limited=len(built),
        )
    for status in STATUSES:
        built = _build([status])
        yield Program(
            f"[{status}] take the entry under limits",
            "A",
            (*built, BookOperation("take", 1, 0)),
            limited=len(built),
        )
    for count in (1, 2, 3):
        for statuses in product(STATUSES, repeat=count):
            yield Program(
                f"[{', '.join(statuses)}] hit, let go, take the last again, finish",
                "ABC"[:count],
                (
                    *_build(statuses),
                    BookOperation("take", 1, 0),
                    BookOperation("drop", 0, 0),
                    BookOperation("drop", 1, 0),
                    BookOperation("take", 1, count - 1),
                    BookOperation("end_pass"),
                    BookOperation("finish", 0),
                    BookOperation("finish", 1),
                ),
            )
    for identifiers in ("AA", "AAA", "AAB", "ABA"):
        takes = [BookOperation("take", 0, i) for i in range(len(identifiers))]
        drops = [BookOperation("drop", 0, i) for i in range(len(identifiers))]
        yield Program(
            f"one request takes {identifiers}, lets go in order", identifiers, (*takes, *drops)
        )
    yield from _orders()
    yield from _resets()
    yield Program("three entries, then reset", "ABC", (*_build(STATUSES[:3]), _RESET, _TAKE))
    yield Program(
        "two requests with one hash and different row counts",
        "A",
        (
            _TAKE,
            BookOperation("take", 1, 0),
            BookOperation("drop", 0, 0),
            BookOperation("drop", 1, 0),
        ),
        content_is_hashed=False,
    )


_LIMITED_ON: tuple[tuple[Status, ...], ...] = (
    (),
    ("unreferenced",),
    ("held by the first",),
    ("unreferenced", "unreferenced"),
    ("unreferenced", "held by the second"),
    ("held by both", "unreferenced"),
)
"""Initial books of a take with an encoder budget and rows chosen before: nothing, some or all of
what is there can be evicted."""


def _orders() -> Iterator[Program]:
    """Entries let go in another order than they were taken in: the first let go is the oldest."""
    for order in permutations(range(2)):
        yield Program(
            f"two entries let go in the order {order}, then a new one",
            "ABC",
            (
                *(BookOperation("take", 0, index) for index in range(2)),
                *(BookOperation("drop", 0, index) for index in order),
                BookOperation("take", 1, 2),
                BookOperation("end_pass"),
            ),
        )
    yield Program(
        "an entry is hit and let go again, and is the youngest then",
        "ABC",
        (
            *_build(("unreferenced", "unreferenced")),
            BookOperation("take", 0, 0),
            BookOperation("drop", 0, 0),
            BookOperation("take", 1, 2),
            BookOperation("end_pass"),
        ),
    )


def _resets() -> Iterator[Program]:
    """Nothing of before a reset comes back after it: no notice, no entry, no reference."""
    yield Program(
        "an entry is evicted, then reset",
        "AB",
        (
            _TAKE,
            BookOperation("drop", 0, 0),
            BookOperation("take", 0, 1),
            _RESET,
            BookOperation("end_pass"),
        ),
    )
    for identifiers in ("A", "AA"):
        takes = tuple(BookOperation("take", 0, i) for i in range(len(identifiers)))
        yield Program(
            f"one request takes {identifiers}, reset, takes the first again and lets it go",
            identifiers,
            (*takes, _RESET, _TAKE, BookOperation("drop", 0, 0), BookOperation("end_pass")),
        )
    yield Program(
        "an unreferenced entry, then reset, then taken again and let go",
        "AB",
        (
            *_build(("unreferenced",)),
            _RESET,
            _TAKE,
            BookOperation("drop", 0, 0),
            BookOperation("take", 1, 1),
            BookOperation("end_pass"),
        ),
    )


_RESET = BookOperation("reset")
_TAKE = BookOperation("take", 0, 0)


def encoder_decoder_programs() -> Iterator[Program]:
    """Items taken, and let go once, as often as every decode step does, and by the finish."""
    takes = (BookOperation("take", 0, 0), BookOperation("take", 0, 1))
    drop = BookOperation("drop", 0, 0)
    yield Program("take two items, let go of one", "AB", (*takes, drop))
    yield Program("let go of an item at two decode steps", "AB", (*takes, drop, drop))
    yield Program("let go of an item, then finish", "AB", (*takes, drop, BookOperation("finish")))
    yield Program("take, then reset", "AB", (*takes, _RESET, _TAKE))
    yield Program("take two items, the second under limits", "AB", takes, limited=1)


def _assumptions(claim_id: str, program: Program) -> tuple[str, ...]:
    assumptions = claim(claim_id).assumptions
    if program.content_is_hashed:
        return assumptions
    return tuple(name for name in assumptions if name != "hash-is-content")


def _second(identifier: str) -> str:
    return f"{identifier} of the second request"


def book_pieces(release: ReleaseSource, name: str, program: Program) -> list[Piece]:
    """Every claim on the decoder-only book, for one program."""
    if program.content_is_hashed:
        return _pieces(release, name, program, "book", CLAIMS)
    return _pieces(release, name, program, "book of unlike contents", UNLIKE_CONTENTS_CLAIMS)


def encoder_decoder_pieces(release: ReleaseSource, name: str, program: Program) -> list[Piece]:
    """Every claim on the encoder-decoder book, for one program."""
    return _pieces(release, name, program, "encoder_decoder_book", ENCODER_DECODER_CLAIMS)


def _pieces(
    release: ReleaseSource, name: str, program: Program, part: str, claims: Sequence[str]
) -> list[Piece]:
    questions = [
        Question(claim_id, part, program.words, _assumptions(claim_id, program))
        for claim_id in claims
    ]
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
            return int(model.eval(value.term, model_completion=True).as_long())

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
