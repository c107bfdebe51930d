"""Ask a release questions: one process imports it once, and forks for each question.

A process can hold only one release, and takes ten seconds and more to import it. The process that
does so runs nothing: each question is put to a fork of it, which ends with its answer, so that no
question finds what another one left behind. It ends when its standard input does, which is when
the tests end, however they end.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from impl.temporary import sweep
from impl.vllm.launch.source import Source, cache_folder, unpacked

ROOT = Path(__file__).parents[2]
_RESULT = "RESULT"


def require_release(release: str) -> Source:
    """The release's source; the test is skipped where it was not fetched."""
    source = unpacked(cache_folder(), release)
    if source is None or find_spec("transformers") is None:
        pytest.skip(f"NOT CHECKED: vllm {release} is not at hand; run `make vllm`")
    return source


def ask(release: str, code: str, *arguments: str, given: str = "") -> Any:
    """What a program prints as JSON after the word ``RESULT``.

    Args:
        release: on which it runs; it is imported already.
        arguments: its ``sys.argv[1:]``.
        given: its standard input.
    """
    question = json.dumps({"code": code, "arguments": [release, *arguments], "given": given})
    process = _started(release)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(question + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    assert line, f"the process that holds vllm {release} ended: {process.wait()}"
    answer = json.loads(line)
    assert answer["exit_code"] == 0, answer["errors"]
    printed = [text for text in answer["output"].splitlines() if text.startswith(_RESULT)]
    assert len(printed) == 1, answer["output"]
    return json.loads(printed[0].removeprefix(_RESULT))


@cache
def _started(release: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", "from tests.support.releases import serve; serve()", release],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    atexit.register(_end, process)
    return process


def _end(process: subprocess.Popen[str]) -> None:
    # It has nothing to finish, and taking all its modules down takes long.
    process.kill()
    process.wait()
    sweep(Path(tempfile.gettempdir()))


def serve() -> None:
    """Import the release that the command line names, and answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    # What a release prints while it is imported is no answer.
    os.dup2(2, 1)
    questions = os.fdopen(os.dup(0))
    _import_all(sys.argv[1])
    for line in questions:
        answers.write(json.dumps(_answer(json.loads(line))) + "\n")
        answers.flush()


def _import_all(release: str) -> None:
    """Import what runs of a release import, by running one on each runner."""
    import torch

    from impl.target import RUNNERS
    from impl.tensors import TensorSettings
    from impl.vllm.runs.target import VllmLoop
    from proofs.run.record import record
    from spec.claims.witnesses import TWO_ITEMS

    # A fork has only the thread that forks: no other one may be at work.
    torch.set_num_threads(1)
    source = unpacked(cache_folder(), release)
    assert source is not None
    target = VllmLoop(source)
    for runner in RUNNERS:
        if target.missing(TWO_ITEMS, runner) is None:
            record(target, TWO_ITEMS, runner, tensors=TensorSettings())


def _answer(question: dict[str, Any]) -> dict[str, Any]:
    """Run a program in a fork; how it ended, and what it printed."""
    with tempfile.TemporaryDirectory(prefix="residency-question-") as folder:
        paths = [Path(folder) / name for name in ("given", "output", "errors")]
        paths[0].write_text(question["given"], encoding="utf-8")
        child = os.fork()
        if child == 0:
            _run(question, paths)
        _, status = os.waitpid(child, 0)
        output, errors = (path.read_text(encoding="utf-8") for path in paths[1:])
    return {
        "exit_code": os.waitstatus_to_exitcode(status),
        "output": output,
        "errors": errors,
    }


def _run(question: dict[str, Any], paths: list[Path]) -> None:
    """Be the program; never return."""
    code = 1
    try:
        for number, path in enumerate(paths):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            os.dup2(descriptor, number)
        sys.stdin = os.fdopen(0)
        sys.argv[1:] = question["arguments"]
        exec(compile(question["code"], "<question>", "exec"), {"__name__": "__main__"})
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
