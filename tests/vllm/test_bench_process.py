"""``bench`` runs a vLLM in a process of its own, which cannot end or mislead the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from proofs.commands.main import main

CHANGED = """
import proofs.drive.bench_process as bench
from proofs.drive.benchmark import PLAIN, Measurement
honest = bench.write_all
loops = (Measurement(PLAIN, "V1", 10, 20, [SECONDS], [1.0]),)
line = bench.to_json(bench._Answered(bench.Measured(loops, ()), None, "")) + b"\\n"
bench.write_all = lambda pipe, _: honest(pipe, CHANGE)
"""

BREAKERS = {
    "ends": ("import os; os._exit(0)", "it ended early (exit code 0)"),
    "raises": ("raise SystemExit(0)", "ERROR "),
    "answers twice": (CHANGED.replace("CHANGE", "line + line"), "more than was asked for"),
    "sends an object": (
        "import pickle" + CHANGED.replace("CHANGE", "pickle.dumps(line) + b'\\n'"),
        "the process that measures vllm at ",
    ),
    "adds a field": (
        CHANGED.replace("CHANGE", """line.replace(b'"why"', b'"code":1,"why"')"""),
        "unknown field",
    ),
    "takes no time": (CHANGED.replace("SECONDS", "0.0"), "no run takes so long"),
    "takes all time": (CHANGED.replace("SECONDS", "1e300"), "no run takes so long"),
    "measures nothing": (CHANGED.replace("(Measurement", "() and (Measurement"), "other runners"),
}


def _measured(folder: Path, code: str) -> tuple[int, str, str]:
    package = folder / "vllm"
    package.mkdir()
    code = code.replace("SECONDS", "0.5").replace("CHANGE", "line")
    (package / "__init__.py").write_text(code, encoding="utf-8")
    arguments = ["bench", "loop", "--target", "vllm", "--source", str(folder), "--runner", "V1"]
    result = CliRunner().invoke(main, [*arguments, "--seconds", "0", "--device", "none"])
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("name", BREAKERS)
def test_code_that_is_measured_does_not_end_the_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong: a checkout ends ``bench`` with any code, or has numbers shown that nobody measured."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    code, why = BREAKERS[name]
    exit_code, stdout, stderr = _measured(tmp_path, code)
    assert exit_code == 5, stdout + stderr
    assert why in stderr
    assert stderr.startswith("ERROR ")
    assert len(stderr.splitlines()) == 1
    assert not stdout


def test_what_is_answered_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: the checkouts above are refused for another reason than the one they change."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    exit_code, stdout, stderr = _measured(tmp_path, CHANGED)
    assert exit_code == 0, stderr
    assert "recorder off" in stdout
