"""How commands end: one line and one exit code, whatever happens."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from io import StringIO
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from impl.target import error_seen
from proofs.commands.main import COMMANDS, main
from proofs.describe.visible import LONGEST_ERROR, harmless_lines
from proofs.jobs.ending import (
    CLOSED_PIPE_EXIT_CODE,
    TRACEBACK_VARIABLE,
    PlainCommand,
    PlainGroup,
    code_of,
)
from proofs.jobs.terminal import progress_bar
from spec.errors import LONGEST_MESSAGE, InputError, described
from tests.support.hostile_names import NAMES

ROOT = Path(__file__).parents[2]


def _raises(error: BaseException) -> click.Command:
    @click.command(cls=PlainCommand)
    def command() -> int:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InputError("no such thing"), 2, "Error: no such thing"),
        (KeyboardInterrupt(), 130, "Interrupted."),
        (MemoryError(), 5, "ERROR out of memory"),
        (BrokenProcessPool("x"), 5, "ERROR a worker process ended early"),
        (OSError(errno.ENOSPC, "No space left on device", "a"), 5, "ERROR a: no space left"),
        (FileNotFoundError(2, "No such file or directory", "link"), 5, "ERROR link: No such file"),
        (RecursionError("too deep"), 5, "ERROR RecursionError: too deep (in test_endings.py"),
        (KeyError("x"), 5, "ERROR KeyError: 'x' (in test_endings.py, line"),
        (AssertionError(), 5, "ERROR AssertionError (in test_endings.py, line"),
        (SystemExit(3), 3, ""),
        (SystemExit("as libraries do"), 5, "Error: as libraries do"),
    ],
)
def test_whatever_is_raised_ends_with_one_line_and_a_code_of_its_own(
    error: BaseException, code: int, line: str
) -> None:
    """Wrong: a command that broke down ends with 1, as if a claim were refuted, or prints a trace.

    Where the command stands in a group, the group changes nothing of it.
    """
    group = PlainGroup("group", commands={"command": _raises(error)})
    for invoked in (
        CliRunner().invoke(_raises(error), []),
        CliRunner().invoke(group, ["command"]),
    ):
        assert invoked.exit_code == code, invoked.output
        assert invoked.output.startswith(line)
        assert invoked.output.count("\n") == (1 if line else 0)


def test_the_traceback_of_an_unexpected_error_is_there_for_who_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Wrong: who has to mend the fault never sees where it came from."""
    monkeypatch.setenv(TRACEBACK_VARIABLE, "1")
    output = CliRunner().invoke(_raises(KeyError("x")), []).output
    assert output.startswith("Traceback")
    assert output.splitlines()[-1].startswith("ERROR KeyError: 'x'")


def test_what_click_says_of_wrong_use_stays() -> None:
    """Wrong: help ends with an error, or a misspelled option with another code than 2."""
    assert CliRunner().invoke(main, ["--help"]).exit_code == 0
    assert CliRunner().invoke(main, ["check", "--tagret", "x"]).exit_code == 2
    assert CliRunner().invoke(main, ["nothing"]).exit_code == 2


@pytest.mark.parametrize(
    "words",
    [
        ["{}"],
        ["--{}"],
        ["explore", "{}"],
        ["explore", "--{}"],
        ["explore", "--workers", "{}"],
        ["explore", "--scope", "{}"],
        ["check", "--runner", "{}"],
        ["check", "--target", "vllm", "--source", "{}"],
        ["replay", "{}"],
        ["lint-config", "--max-num-batched-tokens", "{}"],
    ],
)
def test_what_is_said_of_wrong_words_gives_no_orders(words: list[str]) -> None:
    """Wrong: an argument that a workflow takes from a pull request gives GitHub a command."""
    given = [word.format("a\n::error::b\x1b[2J") for word in words]
    done = CliRunner().invoke(main, given)
    assert done.exit_code == 2, done.output
    assert "\x1b" not in done.output
    assert not [line for line in done.output.splitlines() if line.lstrip().startswith("::")]
    assert "error::b" in done.output


def test_a_message_of_code_under_test_is_cut_and_may_fail() -> None:
    """Wrong: an exception of a checkout fills a report with 30 MB, or breaks what tells of it."""

    class HostileError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no message")

    assert described(HostileError()) == "HostileError: its message cannot be told"
    long = described(ValueError("x" * 30_000_000))
    assert len(long) < LONGEST_MESSAGE + 100
    assert long.endswith("... (30000000 characters)")
    assert error_seen(ValueError("x" * 30_000_000)).message == long.removeprefix("ValueError: ")
    assert described(KeyError()) == "KeyError"


def test_an_error_message_that_repeats_a_file_is_cut() -> None:
    """Wrong: a file of 30 MB is written to the terminal, as part of the message about it."""
    output = CliRunner().invoke(_raises(InputError("x" * 30_000_000)), []).output
    assert len(output) < LONGEST_ERROR + 100
    assert output.endswith("... (30000000 characters)\n")


@pytest.mark.parametrize("name", NAMES)
def test_text_from_outside_gives_no_orders(name: str) -> None:
    """Wrong: an identifier or an error text moves the cursor, or marks an error on GitHub."""
    for text in (name, f"::error::{name}", f"  ::stop-commands::{name}", f"a ##[error]{name}"):
        shown = harmless_lines(text)
        for line in shown.splitlines():
            assert line.isprintable() or not line
            assert not line.lstrip().startswith("::")
            assert "##[" not in line
    output = CliRunner().invoke(_raises(InputError(f"a\n::error::{name}\x1b[2J")), []).output
    assert output.startswith("Error: a ::error::")
    assert output.count("\n") == 1
    assert "\x1b" not in output


def test_a_progress_bar_shows_names_as_they_are_and_gives_no_orders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Wrong: the name of a folder moves the cursor of a terminal, or is taken for markup."""
    shown = StringIO()
    console = Console(file=shown, force_terminal=True, width=200)
    monkeypatch.setattr("proofs.jobs.terminal.Console", lambda **_: console)
    with progress_bar() as report_progress:
        assert report_progress is not None
        report_progress("starting vllm at [/bold] \x1b]0;title\x07 {task}", 1, 2)
    assert "starting vllm at [/bold] \\u001b]0;title\\u0007 {task}" in shown.getvalue()
    assert "\x1b]0" not in shown.getvalue()


def test_lines_of_our_own_stay_as_they_are() -> None:
    """Wrong: harmless text is changed where it is shown."""
    text = "claim  verdict\n  0.33.0: 3 rows, é, [0,1) ✗\n\n  a :: b"
    assert harmless_lines(text) == text


def _run(code: str, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
        [sys.executable, "-c", code], cwd=ROOT, text=True, stderr=subprocess.PIPE, **options
    )


_PRINTS = """
import click, sys
from proofs.jobs.ending import PlainCommand
@click.command(cls=PlainCommand)
def command():
    for _ in range(100_000):
        print("a line of some length, so that it fills every buffer")
command()
"""


def test_a_closed_pipe_ends_quietly() -> None:
    """Wrong: ``residency ... | head`` prints a traceback, or ends with the code of a verdict."""
    process = _run(_PRINTS, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait() == CLOSED_PIPE_EXIT_CODE


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")  # noqa: PTH110
def test_a_full_disk_is_an_error_of_one_line() -> None:
    """Wrong: results that could not be written end with 0, 1 or a traceback."""
    with open("/dev/full", "w") as full:  # noqa: PTH123
        process = _run(_PRINTS.replace("100_000", "1"), stdout=full)
        assert process.stderr is not None
        assert process.stderr.read() == "ERROR output: no space left to write to\n"
        assert process.wait() == 5


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (600_000 << 10, 600_000 << 10))


def test_too_little_memory_is_an_error_of_one_line() -> None:
    """Wrong: a small machine shows a traceback, or ends with the code of a verdict."""
    done = subprocess.run(
        [sys.executable, "-c", "from proofs.commands.main import main; main()", "check"],
        cwd=ROOT,
        preexec_fn=_limit_memory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith("ERROR out of memory")
    assert done.stderr.count("\n") == 1


_WAITS = """
import click, sys, time
from proofs.jobs.ending import PlainCommand
@click.command(cls=PlainCommand)
def command():
    print("at work", flush=True)
    time.sleep(60)
command()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_sigterm_ends_a_command_as_ctrl_c_does(number: signal.Signals) -> None:
    """Wrong: a job that its runner stops says nothing, and leaves its work half done."""
    process = _run(_WAITS, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"
    process.send_signal(number)
    assert process.stderr is not None
    assert process.stderr.read() == "Interrupted.\n"
    assert process.wait() == 130


def test_a_command_returns_its_code() -> None:
    """Wrong: a refuted claim ends with 0."""
    assert code_of(lambda: None) == 0
    assert code_of(lambda: 4) == 4


def test_the_list_of_commands_says_what_their_own_help_says() -> None:
    """Wrong: the list, which is printed without an import of any command, tells something else."""
    group = click.Context(main)
    for name, late in COMMANDS.items():
        command = main.get_command(group, name)
        assert command is not None
        assert late.help == command.get_short_help_str(limit=500)
    listed = CliRunner().invoke(main, ["--help"], terminal_width=200).output
    assert all(f"  {name} " in listed and late.help in listed for name, late in COMMANDS.items())


def test_help_and_refusals_import_no_tensors() -> None:
    """Wrong: who asks for help, or misspells an option, waits seconds for torch."""
    program = """
import sys
from click.testing import CliRunner
from proofs.commands.main import main
for line in sys.stdin.read().splitlines():
    ended = CliRunner().invoke(main, line.split())
    print(ended.exit_code, "torch" in sys.modules, line)
"""
    lines = [
        "--help",
        "claims nonsense",
        "prove --claim nonsense",
        "replay nonsense",
    ]
    ended = subprocess.run(
        [sys.executable, "-c", program],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    codes = [0, 2, 2, 2]
    assert ended.stdout.splitlines() == [
        f"{code} False {line}" for code, line in zip(codes, lines, strict=True)
    ]
