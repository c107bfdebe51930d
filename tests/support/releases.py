"""Ask a release questions: one process imports it once, and forks for each question.

A process can hold only one release, and takes ten seconds to import it. The process that does so
runs nothing: each question is put to a fork of it, which ends with its answer, so that no question
finds what another one left behind. Commands that a test runs in its own process share it.
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

from impl.vllm.launch.source import Source, cache_folder, unpacked
from proofs.drive.jobs import warm_up_of
from proofs.jobs.processes import ShouldStop, run_jobs
from proofs.run.targets import VllmName

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

    vllm: VllmName
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
    question = Question(VllmName(source), code, (release, *arguments), given)
    (answer,) = run_jobs(_run, [question], [release], warm_up_of=warm_up_of)
    output = answer.require(release)
    printed = [line for line in output.splitlines() if line.startswith(_RESULT)]
    assert len(printed) == 1, output
    return json.loads(printed[0].removeprefix(_RESULT))


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
