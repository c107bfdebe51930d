"""Releases of vLLM as sources under proof, for tests."""

from __future__ import annotations

from functools import cache, partial

import pytest

from impl.vllm.launch.source import cache_folder, unpacked
from proofs.source.answers import Answers, Job
from proofs.source.ask.piece import Piece
from proofs.source.code.recorders import OVERRIDES
from proofs.source.code.release import ReleaseSource
from proofs.source.code.run_setup import RunCode
from proofs.source.here import pieces_of_job
from proofs.source.passes.run_scenario import RunShape
from proofs.source.passes.runs import run_pieces
from proofs.source.passes.scheduling import scheduling_pieces
from proofs.source.passes.scheduling_scenario import SchedulingShape


@cache
def real_release(name: str) -> ReleaseSource:
    """A release that was fetched; the test is skipped where it was not."""
    source = unpacked(cache_folder(), name)
    if source is None:
        pytest.skip(f"vLLM {name} IS NOT HERE, so its runs were not proved; run `make vllm`")
    release = ReleaseSource(source.package, OVERRIDES)
    # Parsed once: mutants change one module and share the others.
    RunCode(release)
    return release


def pieces_on(release: ReleaseSource, name: str, shape: RunShape | SchedulingShape) -> list[Piece]:
    """Every claim on one shape. What was settled on the same text is not asked again.

    Not for tests that change the code which asks while it runs: they would be given old answers.
    """
    of_shape = run_pieces if isinstance(shape, RunShape) else scheduling_pieces
    job: Job = partial(of_shape, name=name, shape=shape)  # type: ignore[arg-type]
    return list(pieces_of_job(job, release, name, Answers()))
