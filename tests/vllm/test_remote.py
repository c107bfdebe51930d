"""A checkout runs in a process of its own and says what was seen; it does not judge itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic_core import to_json

from impl.target import error_seen
from impl.targets.runs import ReferenceLoop
from impl.vllm.launch.source import from_directory
from impl.vllm.remote.messages import Answered, Reason, Steps, answer_line, read_answer
from impl.vllm.remote.pipes import (
    MOST_CHARACTERS,
    NoAnswerError,
    environment,
    has_long_string,
)
from impl.vllm.remote.process import RaisedThereError, RemoteProcess
from impl.vllm.remote.targets import RemoteFunctions, RemoteLoop
from proofs.commands.main import main
from proofs.run.judge import run_and_judge
from proofs.run.record import record
from spec.claims.witnesses import TWO_ITEMS
from spec.errors import LONGEST_MESSAGE
from spec.record.steps import LoopBookState
from tests.support import reference_as_vllm
from tests.support.hostile_checkout import BREAKERS, FAULT, LIARS, write_checkout

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "proofs" / "recorded" / "scenarios" / f"switch-{FAULT}.json"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links to checkouts go where they are removed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def jobs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What judges runs in this process; the checkout still has one of its own."""
    for place in ("proofs.drive.documents.run_jobs", "proofs.releases.search.run_jobs"):
        monkeypatch.setattr(place, reference_as_vllm.run_here)


def ended(capfd: pytest.CaptureFixture[str], line: str, folder: Path) -> tuple[object, str]:
    """The exit code of a command on a checkout, and all that it says."""
    arguments = [*line.split(), "--target", "vllm", "--source", str(folder)]
    with pytest.raises(SystemExit) as ending:
        main(arguments, prog_name="residency")
    said = capfd.readouterr()
    return ending.value.code, said.out + said.err


@pytest.mark.parametrize("name", LIARS)
@pytest.mark.usefixtures("jobs_here")
def test_a_checkout_does_not_judge_itself(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Wrong: a checkout that reaches for our judge is told to hold."""
    folder = write_checkout(tmp_path / "checkout", LIARS[name])
    code, said = ended(capfd, f"replay {SCENARIO} --device none", folder)
    assert code == 1, said
    assert "REFUTED drafter-resident-or-boundary" in said
    assert "V1: REFUTED" in said


@pytest.mark.parametrize("name", BREAKERS)
@pytest.mark.usefixtures("jobs_here")
def test_no_whole_answer_is_an_error(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Wrong: a checkout that ends or floods the process, or answers askew, is told to hold."""
    hostile, why = BREAKERS[name]
    folder = write_checkout(tmp_path / "checkout", hostile)
    code, said = ended(capfd, f"replay {SCENARIO} --device none", folder)
    assert code == 5, said
    assert "V1: ERROR" in said
    assert why in said
    assert "HELD" not in said
    assert "Traceback" not in said


def test_the_functions_of_a_checkout_do_not_judge_themselves(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Wrong: what is true of whole runs is not of single functions."""
    line = "check --examples 20 --claims boundary-miss-tolerated"
    liar = write_checkout(tmp_path / "liar", LIARS["wraps the judge"])
    code, said = ended(capfd, line, liar)
    assert code == 1, said
    assert "REFUTED boundary-miss-tolerated" in said
    ends = write_checkout(tmp_path / "ends", BREAKERS["dies in the middle"][0])
    code, said = ended(capfd, line, ends)
    assert code == 5, said
    assert said.startswith("ERROR the process that runs vllm at ")
    assert len(said.splitlines()) == 1


def test_a_whole_command_ends_with_an_error(tmp_path: Path) -> None:
    """Wrong: between the processes of a real command a hostile object ends the parent after all."""
    folder = write_checkout(tmp_path / "checkout", BREAKERS["sends an object that exits"][0])
    done = subprocess.run(
        [
            *(sys.executable, "-P", "-c", "from proofs.commands.main import main; main()"),
            *("check", "--target", "vllm", "--source", str(folder), "--level", "loop"),
            *("--examples", "2", "--device", "none"),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 5, done.stdout + done.stderr
    assert done.stderr.startswith("ERROR vllm at ")
    assert "HELD" not in done.stdout


def test_what_is_seen_through_the_pipe_is_what_is_seen(tmp_path: Path) -> None:
    """Wrong: steps are lost, cut short or changed on their way."""
    folder = write_checkout(tmp_path / "checkout", "")
    loop = RemoteLoop(RemoteProcess(from_directory(folder)))
    alone = ReferenceLoop([FAULT])
    request = replace(TWO_ITEMS.requests[0], max_tokens=400)
    # More steps than one answer takes.
    config = replace(TWO_ITEMS.config, num_kv_blocks=500)
    long = replace(TWO_ITEMS, requests=(request,), config=config)
    for scenario in (TWO_ITEMS, long):
        assert loop.missing(scenario, "V1") is None
        there, here = (record(target, scenario, "V1") for target in (loop, alone))
        assert there.trace.steps == here.trace.steps
    assert len(here.trace.steps) > 300


def test_what_breaks_down_there_is_told_here(tmp_path: Path) -> None:
    """Wrong: an error that is no observation passes for one, or the steps before it are lost."""
    hostile = """
def run(self, *_):
    yield from list(honest_run(self, *_))[:3]
    raise KeyError("on purpose")
honest_run, ReferenceLoop.run = ReferenceLoop.run, run
"""
    loop = RemoteLoop(RemoteProcess(from_directory(write_checkout(tmp_path / "a", hostile))))
    steps = loop.run(TWO_ITEMS, "V1")
    assert [next(steps).kind for _ in range(3)] == ["event", "pass", "update"]
    with pytest.raises(RaisedThereError, match="KeyError: 'on purpose'"):
        next(steps)
    assert loop.missing(TWO_ITEMS, "V1") is None


def test_a_run_without_an_end_is_ended_there(tmp_path: Path) -> None:
    """Wrong: a loop in a checkout is waited for, since nothing computes here."""
    hostile = """
child.SECONDS_OF_A_RUN = 0.2
def run(self, *_):
    while True:
        pass
    yield
ReferenceLoop.run = run
"""
    loop = RemoteLoop(RemoteProcess(from_directory(write_checkout(tmp_path / "a", hostile))))
    judged = run_and_judge(loop, TWO_ITEMS, ("V1",), None)
    assert judged.is_endless
    assert judged.failed["V1"].endswith("V1: no end after 0.2 s of computing")


def in_fork(work: Callable[[], object]) -> str:
    """What a fork of this process comes to, or what it raises."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = str(work())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(write_end, text.encode())
        os._exit(0)
    os.close(write_end)
    os.waitpid(child, 0)
    with os.fdopen(read_end) as file:
        return file.read()


COUNTS = """
asked = []
def missing(self, scenario, runner):
    asked.append(runner)
    if len(asked) == 4:
        os._exit(3)
    return f"{len(asked)} in {os.getpid()}"
ReferenceLoop.missing = missing
"""


THREAD = """
import threading
threading.Thread(target=os.read, args=(os.pipe()[0], 1), daemon=True).start()
"""


@pytest.mark.parametrize("more", ["", THREAD], ids=["forks", "cannot fork"])
def test_a_fork_asks_a_fork(more: str, tmp_path: Path) -> None:
    """Wrong: a job finds what another one left behind, or cannot ask once another broke down."""
    folder = write_checkout(tmp_path / "checkout", COUNTS + more)
    loop = RemoteLoop(RemoteProcess(from_directory(folder)))

    def asked(times: int) -> str:
        return str([loop.missing(TWO_ITEMS, "V1") for _ in range(times)][-1])

    one, first = asked(1).split(" in ")
    assert one == "1"
    three, second = in_fork(lambda: asked(2)).split(" in ")
    again, third = in_fork(lambda: asked(2)).split(" in ")
    assert in_fork(lambda: asked(4)).startswith("NoAnswerError: the process that runs vllm at ")
    last, fourth = in_fork(lambda: asked(2)).split(" in ")
    if not more:
        assert (three, again, last) == ("3", "3", "2")
        assert len({first, second, third, fourth}) == 4
    else:
        # The first that begins has the process itself, and all others have new ones.
        assert (three, again, last) == ("3", "2", "2")
        assert len({first, third, fourth}) == 3
        assert second == first


def test_an_answer_of_another_kind_is_none(tmp_path: Path) -> None:
    """Wrong: a process that answers something else than was asked is believed."""
    hostile = """
from impl.vllm.remote.messages import Steps
honest_answer = child._Child.answer
child._Child.answer = lambda self, q: (
    Steps((), True) if q.kind == "missing part" else honest_answer(self, q))
"""
    process = RemoteProcess(from_directory(write_checkout(tmp_path / "a", hostile)))
    with pytest.raises(NoAnswerError, match="answered 'steps' to 'missing part'"):
        RemoteFunctions(process).missing("V1")


LINE = answer_line(3, Reason("none")).removesuffix(b"\n")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (LINE.replace(b"3", b"4"), "an answer to question 4, where 3 was asked"),
        (LINE.replace(b"3", b"3.0"), "valid integer"),
        (LINE.replace(b"3", b"NaN"), "valid integer"),
        (LINE.replace(b"3", b'"3"'), "valid integer"),
        (LINE.replace(b'"none"', b"7"), "valid string"),
        (LINE.replace(b"{", b'{"more":1,', 1), "more: unknown field"),
        (LINE.replace(b"{", b'{"number":3,', 1), "a key stands twice"),
        (LINE.replace(b":", b": ", 1), "a key stands twice, a field is left out, or it is written"),
        (b'{"number":3,"answer":{"kind":"reason"}}', "reason: Field required"),
        (b'{"number":3,"answer":{"kind":"verdict"}}', "kind"),
        (LINE.replace(b"none", b"n" * (MOST_CHARACTERS + 1)), "a text of more than 20000 bytes"),
        (LINE[:-1], "Invalid JSON"),
        (b"", "Invalid JSON"),
        (b"\xff" + LINE, "Invalid JSON"),
        (b"[" * 100_000, "Invalid JSON"),
    ],
)
def test_an_answer_is_read_to_the_letter(line: bytes, why: str) -> None:
    """Wrong: an answer that reads in two ways, or not at all, is taken for one."""
    assert read_answer(LINE, 3) == Reason("none")
    with pytest.raises(NoAnswerError) as refused:
        read_answer(line, 3)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_long_strings_are_found_whatever_they_hold() -> None:
    """Wrong: quotes within a text, or a long list of numbers, mislead the search for long texts."""
    assert has_long_string(to_json(["a" * 11]), 10)
    assert not has_long_string(to_json(["a" * 10]), 10)
    assert has_long_string(to_json(['"' * 6]), 10)
    assert has_long_string(to_json(["\\" * 6, "b"]), 10)
    assert not has_long_string(to_json([[1] * 100, "a", [2] * 100, "b"]), 10)


def test_what_cannot_be_written_is_told() -> None:
    """Wrong: a release that answers with objects of its own ends the process."""
    wrong = answer_line(1, Reason(object()))  # type: ignore[arg-type]
    assert b"what was seen cannot be written" in wrong
    state = LoopBookState((("\ud800", ()),), (), 0, 0)
    with pytest.raises(Exception, match="surrogates"):
        to_json(state)
    assert b"cannot be written" in answer_line(1, Reason("\ud800"))


def test_messages_are_cut_before_they_are_kept() -> None:
    """Wrong: an error that prints a tensor, or a broken text, leaves no answer at all."""
    seen = error_seen(ValueError("\ud800" * 10_000))
    assert len(seen.message) < 2 * LONGEST_MESSAGE
    line = answer_line(1, Reason(seen.message)).removesuffix(b"\n")
    assert read_answer(line, 1) == Reason(seen.message)
    assert isinstance(Answered(1, Steps((), True)), Answered)


def test_sets_have_one_order_in_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: a tree compared with itself differs, by the order of a set of names."""
    orders = set()
    for seed in ("1", "2", "random"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        program = "print(list({'A', 'B', 'C', 'request'}))"
        orders.add(subprocess.check_output([sys.executable, "-c", program], env=environment()))
    assert len(orders) == 1
