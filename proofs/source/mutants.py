"""Mutate each guard of a release's source in memory, and see whether a question turns red."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from impl.target import Part
from proofs.smt.mutate import Mutant, mutants
from proofs.source.answers import Answers
from proofs.source.ask.piece import Piece
from proofs.source.code.book_calls import (
    BOOK_CLASS,
    BOOK_MODULE,
    ENCODER_DECODER_CLASS,
    FREE_METHOD,
    SCHEDULER_MODULE,
)
from proofs.source.code.gather import INPUTS_MODULE, V1, V2
from proofs.source.code.recorders import OVERRIDES
from proofs.source.code.release import ReleaseSource
from proofs.source.code.source_target import UTILS_MODULE, WINDOW_FUNCTION
from proofs.source.here import pieces_of
from proofs.source.jobs import Scope
from proofs.source.passes.run_scenario import FEW_PASSES
from spec.verdict import Verdict


@dataclass(frozen=True)
class Guards:
    """The guards of one part: functions of one module of the release."""

    part: Part
    module: str
    functions: tuple[str, ...]
    class_name: str | None = None


GUARDS: tuple[Guards, ...] = (
    Guards("free", SCHEDULER_MODULE, (FREE_METHOD,)),
    Guards("window", UTILS_MODULE, (WINDOW_FUNCTION,)),
    Guards("row_range", INPUTS_MODULE, ("get_embeds_indices_in_range",)),
    Guards("V1", V1.module, (V1.method,)),
    Guards("V2", V2.module, (V2.method,)),
    Guards(
        "book",
        BOOK_MODULE,
        (
            "check_and_update_cache",
            "can_allocate",
            "allocate",
            "_add_cached_input_id",
            "free_encoder_input",
            "get_freed_mm_hashes",
        ),
        BOOK_CLASS,
    ),
    Guards("encoder_decoder_book", BOOK_MODULE, ("can_allocate",), ENCODER_DECODER_CLASS),
)


def mutants_of(package: Path, guards: Guards) -> Iterator[Mutant]:
    """Every mutant of a part's guards."""
    tree = ReleaseSource(package, OVERRIDES).tree(guards.module)
    yield from mutants(tree, guards.functions, guards.class_name)


def judged_mutants(
    package: Path,
    name: str,
    guards: Guards,
    made: Iterable[Mutant],
    max_features: int = 2,
    answers: Answers | None = None,
) -> Iterator[tuple[Mutant, Piece | None]]:
    """Mutants of a part's guards, with the first piece that is PROVED no longer, if any.

    What the release itself does not satisfy says nothing of a mutant and is left out.
    """
    release = ReleaseSource(package, OVERRIDES)
    scope = Scope(max_features, FEW_PASSES)
    proved = {
        (piece.claim, piece.shape)
        for piece in pieces_of(release, name, (guards.part,), scope, answers)
        if piece.verdict is Verdict.PROVED
    }
    for mutant in made:
        changed = release.with_change(guards.module, mutant.tree)
        red = (
            piece
            for piece in pieces_of(changed, name, (guards.part,), scope, answers)
            if piece.verdict is not Verdict.PROVED and (piece.claim, piece.shape) in proved
        )
        yield mutant, next(red, None)
