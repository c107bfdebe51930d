"""Mutants of 0.33.0's scheduling of encoder inputs, and what of its proofs turns red for each."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

from impl.vllm.launch.source import cache_folder, unpacked
from proofs.smt.mutate import Mutant, mutants
from proofs.source.answers import Answers
from proofs.source.ask.piece import Piece
from proofs.source.code.book_calls import SCHEDULER_CLASS, SCHEDULER_MODULE
from proofs.source.code.encoder_passes import ALLOCATE_METHOD, RESERVE_METHOD, TRY_METHOD
from proofs.source.code.recorders import OVERRIDES
from proofs.source.code.release import ReleaseSource
from proofs.source.here import pieces_of_job
from proofs.source.passes.call_rule import KNOWN_RULES
from proofs.source.passes.run_scenario import RunShape
from proofs.source.passes.scheduling_scenario import SchedulingShape
from proofs.source.passes.which_rule import scheduled_inputs_piece
from spec.verdict import Verdict
from tests.support.real_releases import pieces_on

RELEASE = "0.33.0"
NAME = "a mutant"
REJECT_METHOD = "_reject_on_encoder_cache_embed_mismatch"

Shape = RunShape | SchedulingShape

SAME = {
    "2050: len(mm_features) > 0 -> len(mm_features) >= 0": (
        "an assertion that never fails may be weaker: a request without features is not asked"
    ),
    "2161: num_computed_tokens < start_pos -> num_computed_tokens <= start_pos": (
        "at the item, the tokens up to it are none either way"
    ),
    "2178: max(0, num_computed_tokens - start_pos) -> num_computed_tokens - start_pos": (
        "rows before a position below 0 are none, as before 0"
    ),
    "2110: max(0, start_pos - (num_computed_tokens + shift_computed_tokens)) -> "
    "start_pos - (num_computed_tokens + shift_computed_tokens)": (
        "the reservation near the prefill's end makes 0 of what is below it"
    ),
    "695: 0 < remaining < self.num_prefill_lookahead -> "
    "0 < remaining <= self.num_prefill_lookahead": (
        "a chunk that leaves exactly the look-ahead is shortened by nothing"
    ),
}
"""Mutants that do the same as the original for all integers, and why. That they do is proved: they
equal the same rule on every kind of call."""


def shape_of(
    identifiers: str,
    *book: str,
    oldest: str = "",
    whole: bool = False,
    far: bool = False,
    masked: bool = False,
    passes: int = 0,
) -> SchedulingShape:
    """A shape; with passes, of a request that is alone."""
    return SchedulingShape(
        identifiers,
        (not masked,) * len(identifiers),
        book,  # type: ignore[arg-type]
        oldest,
        whole,
        far,
        lone=passes > 0,
        num_passes=passes or 1,
    )


SHAPES: tuple[Shape, ...] = (
    RunShape("A"),
    RunShape("A", whole_items=True),
    shape_of("A", "absent"),
    shape_of("A", "absent", passes=1),
    shape_of("A", "absent", far=True),
    shape_of("A", "absent", far=True, passes=1),
    shape_of("A", "absent", whole=True),
    shape_of("A", "another", whole=True),
    RunShape("A", 1),
    shape_of("AA", "absent"),
    RunShape("AA"),
    shape_of("A", "nobody", oldest="A"),
    shape_of("A", "absent", masked=True),
    shape_of("A", "absent", whole=True, far=True),
    shape_of("AB", "absent", "absent"),
    RunShape("A", 1, whole_items=True),
    RunShape("AB"),
    RunShape("A", 1, dense=False),
    shape_of("AB", "absent", "absent", passes=2),
    shape_of("AB", "absent", "absent", whole=True),
    shape_of("AB", "absent", "another", whole=True),
    RunShape("A", 2),
    RunShape("AA", 1),
    RunShape("AB", whole_items=True),
    RunShape("AB", 1),
)
"""Shapes that are asked about, the cheapest first."""


def name_of(shape: Shape) -> str:
    """The shape in words."""
    return f"{shape.part}: {shape.describe()}"


@dataclass(frozen=True)
class Red:
    """A claim that is proved of the release and refuted of a mutant."""

    claim: str
    part: str
    shape: str


@cache
def original() -> ReleaseSource | None:
    """The release, if it is here."""
    source = unpacked(cache_folder(), RELEASE)
    return None if source is None else ReleaseSource(source.package, OVERRIDES)


def key_of(mutant: Mutant) -> str:
    """How tables name a mutant."""
    return f"{mutant.line}: {mutant.change}"


def made(release: ReleaseSource) -> Iterator[Mutant]:
    """Every mutant of the functions that schedule encoder inputs."""
    functions = (TRY_METHOD, RESERVE_METHOD, ALLOCATE_METHOD, REJECT_METHOD)
    yield from mutants(release.tree(SCHEDULER_MODULE), functions, SCHEDULER_CLASS)


@cache
def proved(shape: Shape) -> frozenset[tuple[str, str]]:
    """What is proved of the release itself."""
    release = original()
    assert release is not None
    return frozenset(
        (piece.claim, piece.part)
        for piece in pieces_on(release, NAME, shape)
        if piece.verdict is Verdict.PROVED
    )


def first_red(tree: ast.Module, shapes: Sequence[Shape] = SHAPES) -> Red | None:
    """The first claim that a mutant breaks and its original does not."""
    release = original()
    assert release is not None
    changed = release.with_change(SCHEDULER_MODULE, tree)
    for shape in shapes:
        for piece in pieces_on(changed, NAME, shape):
            if piece.verdict is Verdict.REFUTED and (piece.claim, piece.part) in proved(shape):
                return Red(piece.claim, piece.part, name_of(shape))
    return None


def against_the_rule(tree: ast.Module | None = None) -> Piece:
    """Whether a mutant, or the release itself, schedules by the release's own rule."""
    release = original()
    assert release is not None
    changed = release if tree is None else release.with_change(SCHEDULER_MODULE, tree)
    job = partial(scheduled_inputs_piece, candidates=KNOWN_RULES[:1])
    (piece,) = pieces_of_job(job, changed, NAME, Answers())
    return piece
