"""What a hostile folder, a small machine, a signal or a bad link may do to a whole command."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from proofs.commands.main import main
from tests.support.fake_release import write_release
from tests.support.hostile_source import write_hostile
from tests.support.kills import RESIDENCY, Command, Run
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]

TRAP = """
with open({log!r}, "a") as log:
    log.write(__name__ + "\\n")
raise ImportError("a module of the current folder was imported")
"""


def test_no_process_of_a_proof_imports_what_lies_in_the_current_folder(tmp_path: Path) -> None:
    """Wrong: a module of a checkout in which ``prove`` is run has its rights before any check."""
    log = tmp_path / "imported"
    folder = tmp_path / "checkout"
    write_release(folder)
    for name in {*sys.stdlib_module_names, "pip", "proofs", "spec", "impl", "z3", "cvc5"}:
        (folder / f"{name}.py").write_text(TRAP.format(log=str(log)), encoding="utf-8")
    # As a command is: its own folder is on the path, and not the current one.
    program = tmp_path / "bin" / "command.py"
    program.parent.mkdir()
    program.write_text(RESIDENCY, encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, str(program), "prove", "--source-of", ".", "--no-cache"),
            *("--claim", "row-range-exact"),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSTARTUP": str(folder / "json.py")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not log.exists(), log.read_text(encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert "1 PROVED" in done.stdout


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (600_000 << 10, 600_000 << 10))


LONG = (
    ("check",),
    ("explore", "--scope", "small"),
    ("prove",),
    ("prove", "--source-of", "SOURCE"),
    ("sweep", "--source", "SOURCE"),
    ("ablate",),
    ("bench", "loop"),
    ("replay", "SCENARIO"),
    ("report", "SCENARIO"),
    ("lint-config", "--max-num-batched-tokens", "8", "--largest-item", "4"),
)
SCENARIO = ROOT / "proofs" / "recorded" / "scenarios" / "switch-no-scheduler-shift.json"


COMMANDS = [("-c", RESIDENCY, *words) for words in LONG] + [("-m", "proofs")]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[2:]) or "rules")
def test_too_little_memory_is_an_error_of_one_line(words: tuple[str, ...], tmp_path: Path) -> None:
    """Wrong: a small machine shows a traceback, or ends with the code of a verdict."""
    write_release(tmp_path)
    places = {"SOURCE": str(tmp_path), "SCENARIO": str(SCENARIO)}
    done = subprocess.run(
        [sys.executable, *(places.get(word, word) for word in words)],
        cwd=ROOT,
        preexec_fn=_limit_memory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (5, ""), done.stderr
    assert done.stderr.startswith("ERROR out of memory")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_a_proof_of_an_endless_loop(number: signal.Signals, tmp_path: Path) -> None:
    """Wrong: a loop in a checkout is waited for after Ctrl-C, or runs on for nobody."""
    at_work = tmp_path / "at-work"
    code = f"open({str(at_work)!r}, 'a').close()\nwhile True: pass"
    write_hostile(tmp_path / "source", code)
    words = ("-c", RESIDENCY, "prove", "--source-of", "SOURCE", "--claim", "freed-not-needed")
    folder = tmp_path / "run"
    folder.mkdir()
    run = Run(Command("prove", (*words, "--no-cache")), folder)
    wait_until(at_work.exists, "a proof at work")
    assert len(list(run.processes())) > 1
    run.process.send_signal(number)
    code_of_end, errors = run.end()
    assert code_of_end == (-signal.SIGKILL if number == signal.SIGKILL else 130), errors
    assert errors == ("" if number == signal.SIGKILL else "Interrupted.\n")


@pytest.mark.parametrize(
    "words",
    [
        ("report", "LINK"),
        ("replay", "LINK"),
        ("lint-config", "LINK"),
        ("prove", "--source-of", "FOLDER"),
        ("check", "--target", "vllm", "--source", "FOLDER"),
        ("vllm", "fetch", "--source", "FOLDER"),
    ],
    ids=" ".join,
)
def test_a_link_to_nowhere_is_told_on_one_line(words: tuple[str, ...], tmp_path: Path) -> None:
    """Wrong: a dangling link ends with a traceback, or with an error that nobody expected."""
    (tmp_path / "vllm").symlink_to(tmp_path / "nothing")
    (tmp_path / "link.json").symlink_to(tmp_path / "nothing.json")
    places = {"LINK": str(tmp_path / "link.json"), "FOLDER": str(tmp_path)}
    result = CliRunner().invoke(main, [places.get(word, word) for word in words])
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert result.stderr.strip().splitlines()[-1].startswith("Error: ")
