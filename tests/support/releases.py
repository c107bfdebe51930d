"""Ask a release questions: one process imports it once, and forks for each question.

A process can hold only one release, and takes ten seconds to import it. The process that does so
runs nothing: each question is put to a fork of it, which ends with its answer, so that no question
finds what another one left behind.
"""

from __future__ import annotations

import io
import json
import sys
import traceback
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from impl.target import RUNNERS
from impl.tensors import TensorSettings
from impl.vllm.launch.source import Source, cache_folder, unpacked
from impl.vllm.runs.target import VllmLoop
from proofs.jobs.processes import ShouldStop, run_jobs
from proofs.jobs.warm import WarmUp
from proofs.run.record import record
from spec.claims.witnesses import TWO_ITEMS

if TYPE_CHECKING:
    from proofs.jobs.progress import ReportProgress

_RESULT = "RESULT"


def require_release(release: str) -> Source:
    """The release's source; the test is skipped where it was not fetched."""
    source = unpacked(cache_folder(), release)
    if source is None or find_spec("transformers") is None:
        pytest.skip(f"NOT CHECKED: vllm {release} is not at hand; run `make vllm`")
    return source


@dataclass(frozen=True)
class Question:
    """A program that runs on a release.

    Attributes:
        arguments: its ``sys.argv[1:]``.
        given: its standard input.
    """

    code: str
    arguments: tuple[str, ...]
    given: str


def ask(release: str, code: str, *arguments: str, given: str = "") -> Any:
    """What a program prints as JSON after the word ``RESULT``.

    Args:
        release: on which it runs; it is imported already.
        arguments: its ``sys.argv[2:]``; the first is the release.
        given: its standard input.
    """
    source = unpacked(cache_folder(), release)
    assert source is not None
    question = Question(code, (release, *arguments), given)
    (answer,) = run_jobs(_run, [question], [release], warm_up_of=lambda _: imported(source))
    output = answer.require(release)
    printed = [line for line in output.splitlines() if line.startswith(_RESULT)]
    assert len(printed) == 1, output
    return json.loads(printed[0].removeprefix(_RESULT))


def imported(source: Source) -> WarmUp:
    """A process that has imported all that runs of a release import."""
    return WarmUp(_import, source)


def _import(source: Source) -> bool:
    """Import it, by running a scenario on each runner; whether forks can use it."""
    import torch

    torch.set_num_threads(1)
    target = VllmLoop(source)
    for runner in RUNNERS:
        if target.missing(TWO_ITEMS, runner) is None:
            record(target, TWO_ITEMS, runner, tensors=TensorSettings())
    return not torch.cuda.is_available()


def _run(question: Question, report_progress: ReportProgress, should_stop: ShouldStop) -> str:
    """Run a program, in a process that ends with it; what it printed, or how it broke down."""
    output = io.StringIO()
    sys.stdin = io.StringIO(question.given)
    sys.argv[1:] = question.arguments
    with redirect_stdout(output):
        try:
            exec(compile(question.code, "<question>", "exec"), {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc(file=output)
    return output.getvalue()
