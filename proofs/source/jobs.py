"""Every question about a release's source, in an order that two processes share.

A process that runs the code is told the place of a question and finds the question itself. What may
come of it is known without running anything: the claims and rules that it asks about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from impl.target import RUNNERS
from proofs.source.answers import Job
from proofs.source.ask.piece import RULE, Piece, Question
from proofs.source.code.reads import Read, is_possible
from proofs.source.code.release import ReleaseSource
from proofs.source.functions.book_programs import encoder_decoder_programs, programs
from proofs.source.functions.books import (
    book_pieces,
    book_questions,
    encoder_decoder_pieces,
    encoder_decoder_questions,
)
from proofs.source.functions.free import (
    free_pieces,
    free_questions,
    free_rule_piece,
    free_rule_questions,
)
from proofs.source.functions.gather_scenario import shapes
from proofs.source.functions.gathers import (
    gather_pieces,
    gather_questions,
    tolerance_piece,
    tolerance_questions,
)
from proofs.source.functions.ranges import (
    row_range_piece,
    row_range_questions,
    window_pieces,
    window_questions,
)
from proofs.source.passes.runs import run_pieces, run_questions, shapes_of_runs
from proofs.source.passes.scheduling import (
    scheduling_pieces,
    scheduling_questions,
    scheduling_shapes,
)
from proofs.source.passes.which_rule import scheduled_inputs_piece, scheduled_inputs_questions
from spec.verdict import Verdict

MAX_FEATURES = 3


@dataclass(frozen=True)
class Place:
    """Where a question stands: its part, and its number among those of the part."""

    part: str
    number: int


@dataclass(frozen=True)
class Scope:
    """What is asked of a release: features at once (1 to 3), and passes of a whole run (2 or 3)."""

    max_features: int
    num_passes: int


def jobs_by_part(release: ReleaseSource, name: str, scope: Scope) -> dict[str, list[Job]]:
    """Every question, by part. The release is read for it, and nothing of it is run.

    Args:
        name: what the release is called.
    """
    max_features = scope.max_features
    counts = range(1, max_features + 1)
    jobs: dict[str, list[Job]] = {
        "free": [
            free_rule_piece,
            *(partial(free_pieces, name=name, count=count) for count in counts),
        ],
        "window": [partial(window_pieces, name=name, count=count) for count in counts],
        "row_range": [partial(row_range_piece, name=name)],
        "book": [partial(book_pieces, name=name, program=program) for program in programs()],
        "encoder_decoder_book": [
            partial(encoder_decoder_pieces, name=name, program=program)
            for program in encoder_decoder_programs()
        ],
        "scheduling": [
            scheduled_inputs_piece,
            *(
                partial(scheduling_pieces, name=name, shape=shape)
                for shape in scheduling_shapes(release, max_features)
            ),
        ],
        "runs": [
            partial(run_pieces, name=name, shape=shape)
            for shape in shapes_of_runs(release, max_features, scope.num_passes)
        ],
    }
    for runner in RUNNERS:
        jobs[runner] = [
            partial(tolerance_piece, name=name, runner=runner),
            *(
                partial(gather_pieces, name=name, runner=runner, shape=shape)
                for shape in shapes(max_features)
            ),
        ]
    return jobs


_QUESTIONS: Mapping[Any, Callable[..., Sequence[Question]]] = {
    free_pieces: free_questions,
    free_rule_piece: free_rule_questions,
    window_pieces: window_questions,
    row_range_piece: row_range_questions,
    book_pieces: book_questions,
    encoder_decoder_pieces: encoder_decoder_questions,
    gather_pieces: gather_questions,
    tolerance_piece: tolerance_questions,
    scheduling_pieces: scheduling_questions,
    scheduled_inputs_piece: scheduled_inputs_questions,
    run_pieces: run_questions,
}
"""By what answers, what is asked: it is given the same arguments, but for the release."""


def questions_of(job: Job) -> tuple[Question, ...]:
    """What a job asks about, in the order of its answers."""
    function = job.func if isinstance(job, partial) else job
    named = job.keywords if isinstance(job, partial) else {}
    arguments = {key: value for key, value in named.items() if key != "name"}
    return tuple(_QUESTIONS[function](**arguments))


def words_of(job: Job) -> str:
    """What a job asks about, in words."""
    questions = questions_of(job)
    claims = ", ".join(dict.fromkeys(question.claim for question in questions))
    return f"{claims} of {questions[0].part}, {questions[0].shape}"


def unknown(job: Job, why: str) -> tuple[Piece, ...]:
    """What is known where a job came to no end."""
    return tuple(
        Piece(
            question.claim,
            question.part,
            question.shape,
            Verdict.UNKNOWN,
            assumptions=question.assumptions,
            detail=why,
        )
        for question in questions_of(job)
    )


def misfit(job: Job, pieces: Sequence[Piece], reads: Sequence[Read], name: str) -> str | None:
    """Why these cannot be what came of a job; ``None`` where they can.

    Args:
        reads: what it read of the release.
        name: what the release is called.
    """
    asked = [(q.claim, q.part, q.shape, q.assumptions) for q in questions_of(job)]
    if [(piece.claim, piece.part, piece.shape, piece.assumptions) for piece in pieces] != asked:
        return "it answers another question"
    if not reads or not all(map(is_possible, reads)):
        return "it reads what no release has"
    for piece in pieces:
        if piece.verdict not in _POSSIBLE:
            return f"{piece.verdict.name} is no verdict of a proof"
        if (piece.verdict is Verdict.PROVED) and (
            (piece.z3, piece.cvc5) != ("unsat", "unsat") or piece.counts.unfinished
        ):
            return "a proof without both solvers, or with paths left"
        if piece.verdict is Verdict.REFUTED and (piece.z3, piece.cvc5) != ("sat", "sat"):
            return "a refutation without both solvers"
        found = piece.finding
        needs_finding = piece.verdict is Verdict.REFUTED and not piece.claim.startswith(RULE)
        if (found is not None) != needs_finding:
            return "a violation without a case, or a case without a violation"
        if found is not None and (found.claim, found.target) != (
            piece.claim,
            f"{name} {piece.part}",
        ):
            return "a case of another claim, or of another release"
    return None


_POSSIBLE = (Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN, Verdict.ERROR)
