"""Ways in which a source proof could pass for want of looking; each was once open."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from proofs.source.check import SourceReport, check_source
from proofs.source.code.recorders import OVERRIDES
from proofs.source.code.release import ReleaseSource
from proofs.source.here import pieces_of
from proofs.source.jobs import Scope
from proofs.source.passes.run_scenario import FEW_PASSES
from proofs.symbolic.exploration import Exploration
from proofs.symbolic.integers import NotModelled
from spec.verdict import Verdict
from tests.support.fake_release import write_release
from tests.support.waiting import wait_until, workers_of

ROOT = Path(__file__).parents[2]


def _report(package: Path, *parts: str) -> SourceReport:
    return check_source(package, "fake", parts=parts, max_features=1, workers=1)


def _refuted(report: SourceReport) -> set[str]:
    return {r.claim for r in report.results if r.verdict is Verdict.REFUTED}


def _refutes(package: Path, part: str, claim: str) -> bool:
    """Whether any question on a part refutes the claim; the first that does is the last asked."""
    return any(
        piece.claim == claim and piece.verdict is Verdict.REFUTED
        for piece in pieces_of(
            ReleaseSource(package, OVERRIDES), "fake", (part,), Scope(1, FEW_PASSES)
        )
    )


def test_a_mask_slice_longer_than_its_place_is_an_error(tmp_path: Path) -> None:
    """Tensors of unlike lengths cannot be written to each other; recorders must not allow it."""
    change = ("position.is_embed[start:stop]", "position.is_embed[start : position.length]")
    report = _report(write_release(tmp_path, gpu_model_runner=change), "V1")
    assert "no-error" in _refuted(report)


def test_an_error_must_name_the_hash_itself(tmp_path: Path) -> None:
    """Prose that happens to hold a letter names nothing."""
    change = ('f"nothing stored for {feature.identifier}"', '"A miss, B or C"')
    report = _report(write_release(tmp_path, gpu_model_runner=change), "V1")
    assert "interior-miss-raises" in _refuted(report)


def test_the_oldest_unreferenced_entry_is_not_the_first_inserted(tmp_path: Path) -> None:
    """A book that evicts by insertion passes every program that lets go in that order."""
    change = ("            self.cached[name] = self.cached.pop(name)\n", "")
    package = write_release(tmp_path, encoder_cache_manager=change)
    assert _refutes(package, "book", "book-exact")


def test_a_reset_forgets_its_notices(tmp_path: Path) -> None:
    """A notice from before a reset would drop what was encoded after it."""
    change = ("{}, {}, set(), []\n", "{}, {}, set(), getattr(self, 'evicted', [])\n")
    package = write_release(tmp_path, encoder_cache_manager=change)
    assert _refutes(package, "book", "book-exact")


def test_the_last_definition_of_a_name_counts(tmp_path: Path) -> None:
    """Python keeps the last one; proving the first would prove dead code."""
    package = write_release(tmp_path)
    path = package / "multimodal" / "utils.py"
    second = "\n\ndef get_mm_features_in_window(mm_features, start, end):\n    return 0, 0\n"
    path.write_text(path.read_text() + second)
    assert "window-exact" in _refuted(_report(package, "window"))


@pytest.mark.parametrize("expression", ["end // 2 <= seen", "end % 7 <= seen", "abs(end) <= seen"])
def test_unmodelled_arithmetic_is_unknown(tmp_path: Path, expression: str) -> None:
    """A gap of ours must not be taken for an exception of the code's."""
    package = write_release(tmp_path, scheduler=("end <= seen", expression))
    verdicts = {r.verdict for r in _report(package, "free").results}
    assert verdicts == {Verdict.UNKNOWN}


def test_asking_the_book_for_more_than_is_modelled_is_unknown(tmp_path: Path) -> None:
    """A fork may call methods of its own; that ends in a verdict and not in a traceback."""
    change = ("self._let_go(request, i)", "self.encoder_cache_manager.touch(i)")
    report = _report(write_release(tmp_path, scheduler=change), "free")
    assert {r.verdict for r in report.results} == {Verdict.UNKNOWN}


def test_code_that_does_not_repeat_itself_is_not_modelled() -> None:
    """Paths are found by running again; state that outlives a run would mix two functions."""
    exploration = Exploration()
    x, y = exploration.integer("x"), exploration.integer("y")
    runs: list[int] = []

    def run() -> bool:
        runs.append(1)
        return bool(x > 0) if len(runs) == 1 else bool(y > 0)

    with pytest.raises(NotModelled, match="same way"):
        exploration.explore(run)


@pytest.mark.skipif(sys.platform != "linux", reason="workers are found in /proc")
def test_an_interrupt_ends_the_command_and_its_workers(tmp_path: Path) -> None:
    """Ctrl-C reaches the whole process group; the command must end, and say so in one line."""
    command = [sys.executable, "-c", "from proofs.commands.main import main; main()"]
    package = write_release(tmp_path)
    process = subprocess.Popen(
        [*command, "prove", "--source-of", str(package.parent)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        wait_until(lambda: bool(workers_of(process.pid)), "a worker")
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert errors.strip() == "Interrupted."


@pytest.mark.parametrize(
    "text",
    [
        "import os\n\ndef attack(found=os._exit(7)):\n    return found\n",
        "def attack(found=open('/etc/hostname')):\n    return found\n",
        "def attack(found=exec('1')):\n    return found\n",
        "def attack(found=exit(7)):\n    return found\n",
        "def attack(found=__import__('os')):\n    return found\n",
        "from sys import modules\n\nclass attack:\n    found = modules\n",
    ],
)
def test_a_definition_reaches_no_file_and_no_process(tmp_path: Path, text: str) -> None:
    """Wrong: to compile a function is to let its default arguments end the process."""
    package = tmp_path / "vllm"
    (package / "v1" / "core").mkdir(parents=True)
    (package / "attack.py").write_text(text, encoding="utf-8")
    module = ReleaseSource(package, {}).module("vllm.attack")
    with pytest.raises(NotModelled):
        module.value("attack")
