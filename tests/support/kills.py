"""Kill any process of a long command at any moment, and see what is left.

A moment is a share of the computing time that the command takes when it is left alone, of all its
processes together: a busy machine comes to the same moments, only later. The processes of a command
are known by a variable in their environment.

``python -m tests.support.kills [COMMAND ...]`` goes through commands, each with ten seeded moments.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias
from uuid import uuid4

from impl.temporary import sweep
from impl.vllm.launch.source import cache_folder, unpacked
from spec.verdict import Verdict, exit_code
from tests.support.fake_scheduler import write_scheduling_release
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
_MARK = "RESIDENCY_KILLED_BY_TESTS"
_ERROR = exit_code([Verdict.ERROR])

_PAUSE = 0.2
"""Seconds between two looks at all processes of the machine."""

_TICKS = os.sysconf("SC_CLK_TCK")

Victim: TypeAlias = Literal["parent", "worker", "tracker"]
VICTIMS: tuple[Victim, ...] = ("parent", "worker", "tracker")

RESIDENCY = "from proofs.commands.main import main; main()"
EXPLORE = "from proofs.explore import search; search.num_jobs = lambda scope: 3; " + RESIDENCY


@dataclass(frozen=True)
class Command:
    """A long command.

    Attributes:
        words: of the interpreter; ``RESULTS`` stands for the folder of results, and ``SOURCE`` for
            a tiny release.
        has_workers: whether other processes work for it.
    """

    name: str
    words: tuple[str, ...]
    has_workers: bool = True

    def victims(self) -> tuple[Victim, ...]:
        """What of it can be killed."""
        return VICTIMS if self.has_workers else ("parent",)


_JSON = ("--json", "RESULTS/found.json")
_SMALL = ("--scope", "small", "--lockstep", "0", "--relation", "0", "--claims", "no-stall")
_SEARCH = ("--examples", "20", "--device", "none")
_LOOP = ("--target", "vllm", "--release", "0.33.0", "--level", "loop")
COMMANDS = (
    Command("explore", ("-c", EXPLORE, "explore", *_SMALL, "--resume", "RESULTS", *_JSON)),
    Command(
        "prove the source",
        (
            "-c",
            RESIDENCY,
            "prove",
            "--source-of",
            "SOURCE",
            "--claim",
            "window-exact",
            "--no-cache",
            *_JSON,
        ),
    ),
    Command(
        "prove the rules",
        ("-m", "proofs", "--claim", "views-agree", *_JSON),
        has_workers=False,
    ),
    Command("check a release", ("-c", RESIDENCY, "check", *_LOOP, *_SEARCH, *_JSON)),
    Command(
        "sweep",
        ("-c", RESIDENCY, "sweep", "--release", "0.33.0", "--release", "0.24.0", *_SEARCH, *_JSON),
    ),
)
BY_NAME = {command.name: command for command in COMMANDS}


class Run:
    """A command that has begun.

    Args:
        folder: its temporary folders and its results lie in it, and the tiny release beside it.
    """

    def __init__(self, command: Command, folder: Path) -> None:
        self.results, temporary, source = (
            folder / "results",
            folder / "tmp",
            folder.parent / "source",
        )
        for path in (self.results, temporary):
            path.mkdir(exist_ok=True)
        if not source.exists():
            write_scheduling_release(source)
        places = {"RESULTS": str(self.results), "SOURCE": str(source)}
        words = [
            word.replace("RESULTS", places["RESULTS"]).replace("SOURCE", places["SOURCE"])
            for word in command.words
        ]
        self.temporary = temporary
        self._mark = f"{_MARK}={uuid4()}".encode()
        name, _, value = self._mark.decode().partition("=")
        self.process = subprocess.Popen(
            [sys.executable, *words],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(temporary), name: value},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def processes(self) -> Iterator[int]:
        """Its processes that have not ended, the first one included."""
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and self._mark in (entry / "environ").read_bytes():
                    yield int(entry.name)
            except OSError:
                continue  # It has just ended, or is somebody else's.

    def seconds(self) -> float:
        """Computing time of its processes at work, and of those whose end these have seen."""
        found = 0
        for process in self.processes():
            try:
                words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            found += sum(int(word) for word in words[11:15])
        return found / _TICKS

    def kind(self, process: int) -> Victim:
        """What a process is to the command."""
        if process == self.process.pid:
            return "parent"
        try:
            line = Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            return "worker"
        return "tracker" if b"resource_tracker" in line else "worker"

    def kill(self, victim: Victim, after: float, random: Random) -> bool:
        """Kill one of its processes; whether there was one.

        Args:
            after: seconds of computing; where none of the kind is there by then, the next that is.
        """
        found: list[int] = []

        def is_there() -> bool:
            found[:] = [p for p in self.processes() if self.kind(p) == victim]
            return (bool(found) and self.seconds() >= after) or self.process.poll() is not None

        wait_until(is_there, f"a {victim} after {after:.1f} s of computing", _PAUSE)
        if self.process.poll() is not None or not found:
            return False
        try:
            os.kill(random.choice(sorted(found)), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def end(self) -> tuple[int, str]:
        """Wait for the end of all its processes; the exit code and what it said of errors."""
        _, errors = self.process.communicate()
        wait_until(lambda: not list(self.processes()), "the end of all processes", _PAUSE)
        return self.process.returncode, errors


def contents(results: Path) -> dict[str, str]:
    """The files of results, each read whole; what a kill may leave under other names apart."""
    found = {}
    for path in sorted(results.iterdir()):
        if not path.name.startswith("."):
            data = json.loads(path.read_text())
            found[path.name] = json.dumps(_without_times(data), sort_keys=True)
    return found


def _without_times(data: object) -> object:
    """The data without what differs from run to run."""
    if isinstance(data, dict):
        timed = ("seconds", "milliseconds", "made")
        return {key: _without_times(value) for key, value in data.items() if key not in timed}
    return [_without_times(value) for value in data] if isinstance(data, list) else data


@dataclass(frozen=True)
class Alone:
    """A command that was left alone.

    Attributes:
        code: its exit code.
        seconds: of computing that it took.
    """

    code: int
    seconds: float
    results: dict[str, str]


def left_alone(command: Command, folder: Path) -> Alone:
    """Run a command to its end."""
    folder.mkdir()
    before = sum(os.times()[2:4])
    run = Run(command, folder)
    code, errors = run.end()
    assert 0 <= code < _ERROR, errors
    return Alone(code, sum(os.times()[2:4]) - before, contents(run.results))


def killed_and_run_again(
    command: Command,
    victim: Victim,
    share: float,
    alone: Alone,
    folder: Path,
    random: Random,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Kill a process of a command at a moment, and run the command again over what is left.

    Args:
        share: of the computing time that it takes when it is left alone.
        folder: new for each call.
    """
    folder.mkdir()
    run = Run(command, folder)
    was_killed = run.kill(victim, share * alone.seconds, random)
    code, errors = run.end()
    say(f"{command.name}, {victim} at {share:.2f}: killed {was_killed}, exit code {code}")
    if victim == "parent":
        assert code in ((-signal.SIGKILL,) if was_killed else (alone.code,)), errors
    else:
        # A worker may have given its last answer.
        may_fail = was_killed and victim == "worker"
        assert code in ({_ERROR, alone.code} if may_fail else {alone.code}), errors
        # Python's own tracker, begun anew, complains of what the killed one knew.
        assert victim == "tracker" or "Traceback" not in errors, errors
    if code == alone.code:
        assert contents(run.results) == alone.results
    else:
        # Whatever is there is whole, and what was done before the end is right.
        done = contents(run.results)
        done.pop("found.json", None)
        assert done.items() <= alone.results.items()
    again = Run(command, folder)
    code, errors = again.end()
    assert code == alone.code, errors
    assert contents(again.results) == alone.results
    sweep(again.temporary)
    assert not list(again.temporary.glob("residency-*"))
    assert not [path for path in again.results.iterdir() if path.name.startswith(".found.json.")]


def main() -> None:
    """Go through the commands named, or all: every kind of process and ten moments of each."""
    random = Random(0)
    for command in [BY_NAME[name] for name in sys.argv[1:]] or COMMANDS:
        releases = [word for word in command.words if word.startswith("0.")]
        if not all(unpacked(cache_folder(), release) for release in releases):
            print(f"NOT CHECKED: {command.name} needs vllm {', '.join(releases)}; run `make vllm`")
            continue
        with TemporaryDirectory(prefix="residency-kills-") as name:
            alone = left_alone(command, Path(name) / "alone")
            for victim in command.victims():
                for number in range(10):
                    folder = Path(name) / f"{victim} {number}"
                    share = random.random()
                    killed_and_run_again(command, victim, share, alone, folder, random, print)


if __name__ == "__main__":
    main()
