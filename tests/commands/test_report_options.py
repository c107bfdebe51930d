"""Every command that can find a violation writes reports, and says at once where it cannot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from proofs.commands.main import main
from proofs.recorded import SCENARIOS

RECORDED = SCENARIOS / "shifted-cut.json"

NO_REPORT = {
    "bench loop": "nothing passes or fails: it measures",
    "claims": "it tells what claims rest on; a gap is a fault of this project, and no run",
    "vllm fetch": "it fetches",
    "vllm list": "it lists",
}
"""Commands without a report, and why."""

OTHERWISE = {"report": "--output"}
"""Commands whose report goes where another option says."""

IN_FOLDER = ("--report", "--output", "--scenarios", "--smt2")
"""Options that name a folder to be made."""

IN_FILE = ("--json", "--junit", "--sarif", "--trace", "--itf")
"""Options that name a file to be written."""

GIVEN = {
    "replay": [str(RECORDED)],
    "report": [str(RECORDED)],
    "prove": ["--source-of", "{vllm}"],
    "lint-config": ["--max-num-batched-tokens", "8", "--largest-item", "4"],
}
"""What a command needs before it looks at its outputs."""


def commands(
    group: click.Command = main, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by its name on the line."""
    if not isinstance(group, click.Group):
        yield " ".join(path), group
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from commands(command, (*path, name))


ALL = dict(commands())


def options(command: click.Command) -> set[str]:
    """The options of a command."""
    return {
        name
        for option in command.params
        if isinstance(option, click.Option)
        for name in option.opts
    }


def says_refuted(command: click.Command) -> bool:
    """Whether the command's help has the exit code of a refuted claim."""
    return bool(re.search(r"\b1 when|, 1 if", " ".join((command.help or "").split())))


@pytest.mark.parametrize("name", ALL)
def test_every_command_that_can_refute_takes_a_report(name: str) -> None:
    """Wrong: a violation that a command finds and nobody can read, run or paste."""
    command = ALL[name]
    taken = options(command)
    if name in NO_REPORT:
        assert not says_refuted(command), "it can end with REFUTED, and needs a report"
        assert "--report" not in taken, "it has a report, and is no exception any more"
        return
    assert OTHERWISE.get(name, "--report") in taken
    if says_refuted(command):
        assert {"--junit", "--sarif"} <= taken, "machines are not told of what it refutes"


def test_the_exceptions_are_commands() -> None:
    """Wrong: a renamed command that nothing is asked of any more."""
    assert {*NO_REPORT, *OTHERWISE, *GIVEN} <= set(ALL)
    refuting = {name for name, command in ALL.items() if says_refuted(command)}
    assert refuting >= {"check", "explore", "lint-config", "prove", "replay", "report", "sweep"}


OUTPUTS = [
    (name, option)
    for name, command in ALL.items()
    for option in sorted(options(command) & {*IN_FOLDER, *IN_FILE})
]


@pytest.mark.parametrize(("name", "option"), OUTPUTS)
def test_an_output_that_cannot_be_made_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, option: str
) -> None:
    """Wrong: the work of an hour is lost at its end, with a traceback."""
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "vllm"
    package.mkdir()
    (package / "__init__.py").write_text("")
    # Nobody may make a file here, whoever he is; there are no permissions that say so.
    place = "/proc/out" if option in IN_FOLDER else "/proc/out.json"
    words = [word.format(vllm=tmp_path) for word in GIVEN.get(name, ())]
    if option == "--smt2":
        words = []  # Of the rules' proofs, which need nothing.
    done = CliRunner().invoke(main, [*name.split(), *words, option, place])
    assert done.exit_code == 2, done.output
    assert isinstance(done.exception, SystemExit)
    last = done.output.strip().splitlines()[-1]
    assert last.startswith("Error: ")
    assert f"{place}: cannot be created" in last
    assert "HELD" not in done.output
    assert "PROVED" not in done.output


def test_a_name_that_is_too_long_is_told_at_once(tmp_path: Path) -> None:
    """Wrong: a folder that looks writable and cannot be made."""
    words = ["report", str(RECORDED), "-o", str(tmp_path / ("n" * 300))]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2, done.output
    assert done.output.startswith("Error: ")
    assert len(done.output.splitlines()) == 1
    assert "File name too long" in done.output
    assert list(tmp_path.iterdir()) == []
