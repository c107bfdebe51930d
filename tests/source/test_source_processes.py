"""Code of a source under proof runs in processes of its own, which neither end nor mislead ours."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from impl.vllm.remote.pipes import NoAnswerError
from proofs.commands.main import main
from proofs.source import elsewhere
from proofs.source.answers import Settled
from proofs.source.ask.piece import Piece
from proofs.source.check import check_source
from proofs.source.code.recorders import OVERRIDES
from proofs.source.code.release import ReleaseSource
from proofs.source.elsewhere import Limits
from proofs.source.here import Here, pieces_of_job
from proofs.source.jobs import Scope, jobs_by_part, misfit, questions_of, words_of
from proofs.source.messages import Answered, Came, Done, answer_line, read_answer
from proofs.symbolic.exploration import Counts
from spec.verdict import Verdict
from tests.support.fake_release import write_release
from tests.support.hostile_source import FAULT, write_hostile

CLAIM = "freed-not-needed"
SCOPE = Scope(1, 2)
READS = (("module", "vllm.v1"), ("definition", "vllm.v1.request", "", "one"))
IMPOSSIBLE = (
    (),
    ((),),
    (("module",),),
    (("module", "os"),),
    (("module", "vllm./etc/passwd"),),
    (("module", "vllm..."),),
    (("name", "vllm.v1"),),
    (("name", "vllm.v1", "a b"),),
    (("text", "vllm.v1"),),
)


def _proved(package: Path) -> Result:
    arguments = ["prove", "--source-of", str(package.parent), "--claim", CLAIM, "--no-cache"]
    return CliRunner().invoke(main, [*arguments, "--max-features", "1"])


CHANGED = """
from proofs.source import child
honest = child.answer_line
def changed(number, answer):
    line = honest(number, answer)
    return CHANGE if answer.kind == 'came' else line
child.answer_line = changed
"""


def _changed(change: str) -> str:
    return CHANGED.replace("CHANGE", change)


PICKLE = """
import os, pickle
class Ends:
    def __reduce__(self):
        return os._exit, (0,)
"""

BREAKERS = {
    "ends": ("import os; os._exit(0)", "it ended early (exit code 0)"),
    "says why it ends": (
        "import os; print('last', flush=True); os._exit(7)",
        "(exit code 7): last",
    ),
    "is killed": ("import os; os.kill(os.getpid(), 9)", "it ended early (exit code -9)"),
    "sends an object that exits": (
        PICKLE + _changed("pickle.dumps(Ends()) + b'\\n'"),
        "Invalid JSON",
    ),
    "answers twice": (_changed("line + line"), "sent more than was asked for"),
    "answers something else": (
        _changed("honest(number, child.Done())"),
        "it answered 'done'",
    ),
    "writes a key twice": (
        _changed('line.replace(b\'"number":\', b\'"number":0,"number":\')'),
        "a key stands twice",
    ),
    "adds a field": (
        _changed('line.replace(b\'"settled":{\', b\'"settled":{"sure":true,\')'),
        "settled.sure: unknown field",
    ),
    "sends 100 MB": (_changed("b' ' * (100 << 20) + line"), "longer than 16777216 bytes"),
    "answers another question": (
        _changed("line.replace(b'free past the prompt', b'free')"),
        "it answers another question",
    ),
    "proves without a solver": (
        _changed("line.replace(b'REFUTED', b'PROVED')"),
        "",
    ),
    "shows what no request does": (
        _changed("line.replace(b'_placeholders\":1', b'_placeholders\":0')"),
        "names a violation that is none when its case is run once more",
    ),
    "shows what is no violation": (
        _changed("line.replace(b'\"num_computed_tokens\":1', b'\"num_computed_tokens\":9')"),
        "names a violation that is none when its case is run once more",
    ),
}


@pytest.mark.parametrize("name", BREAKERS)
def test_no_whole_answer_is_an_error(name: str, tmp_path: Path) -> None:
    """Wrong: code under proof ends the command as it likes, or what it sends is believed."""
    code, why = BREAKERS[name]
    result = _proved(write_hostile(tmp_path, code))
    assert result.exit_code == 5, result.output
    assert why in result.stderr, result.output
    assert result.stderr.startswith("ERROR ")
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert "PROVED" not in result.output


LIARS = {
    "prints a verdict": "import os; os.write(1, b'PROVED'); print('PROVED', flush=True)",
    "wraps the monitor": """
from spec.monitor.functions import observed, free_moments
observed.check = observed.check_free = free_moments.check_free = lambda *_: ()
""",
}


@pytest.mark.parametrize("name", LIARS)
def test_what_it_reaches_of_ours_is_not_what_judges(name: str, tmp_path: Path) -> None:
    """Wrong: code under proof that reaches for the monitor is told to be right."""
    result = _proved(write_hostile(tmp_path, LIARS[name]))
    assert result.exit_code == 1, result.output
    assert "smallest counterexamples, replayed on plain integers" in result.stdout
    assert not result.stderr


def test_code_of_a_release_runs_in_no_process_that_judges(tmp_path: Path) -> None:
    """Wrong: a counterexample is made small, or run again, in the process that says what it is."""
    log = tmp_path / "processes"
    code = f"import os; open({str(log)!r}, 'a').write(str(os.getpid()) + '\\n')"
    result = _proved(write_hostile(tmp_path, code))
    assert result.exit_code == 1, result.output
    processes = {int(line) for line in log.read_text(encoding="utf-8").split()}
    assert processes
    assert os.getpid() not in processes


@pytest.mark.parametrize(
    ("code", "limits", "why"),
    [
        ("while True: pass", Limits(seconds=1), "no end after 1 s of computing"),
        (
            "import time; time.sleep(1000)",
            Limits(seconds_of_silence=1.5),
            "no answer for 1.5 s",
        ),
        ("x = bytearray(1 << 40)", Limits(), "out of memory"),
        ("x = [bytes(1 << 20) for _ in range(2000)]", Limits(num_bytes=1 << 30), "out of memory"),
    ],
)
def test_a_question_that_takes_too_much_is_unknown(
    code: str, limits: Limits, why: str, tmp_path: Path
) -> None:
    """Wrong: a loop in a checkout is waited for, or takes other questions along with it."""
    package = write_hostile(tmp_path, code)
    report = check_source(
        package, "a release", parts=("free", "window"), max_features=1, workers=2, limits=limits
    )
    verdicts = {(result.claim, result.part): result for result in report.results}
    of_free = [result for result in report.results if result.part.startswith("free")]
    assert {result.verdict for result in of_free} == {Verdict.UNKNOWN}
    assert {result.detail for result in of_free} == {why}
    assert verdicts[CLAIM, "free"].assumptions
    assert verdicts["window-exact", "window"].verdict is Verdict.PROVED


def _pieces(package: Path) -> list[tuple[str, int, tuple[Piece, ...]]]:
    release = ReleaseSource(package, OVERRIDES)
    return [
        (part, number, pieces_of_job(job, release, "fake"))
        for part, jobs in jobs_by_part(release, "fake", SCOPE).items()
        for number, job in enumerate(jobs[:2])
        if part in ("free", "window", "row_range", "V1", "book")
    ]


def test_only_what_fits_the_question_is_believed(tmp_path: Path) -> None:
    """Wrong: a verdict that no proof can have is taken over."""
    package = write_release(tmp_path, scheduler=FAULT)
    jobs = jobs_by_part(ReleaseSource(package, OVERRIDES), "fake", SCOPE)
    seen: set[Verdict] = set()
    for part, number, pieces in _pieces(package):
        job = jobs[part][number]
        assert misfit(job, pieces, READS, "fake") is None, words_of(job)
        seen |= {piece.verdict for piece in pieces}
        first, *rest = pieces

        def changed(
            first: Piece = first, rest: Sequence[Piece] = rest, **fields: object
        ) -> tuple[Piece, ...]:
            return (replace(first, **fields), *rest)  # type: ignore[arg-type]

        wrong = [
            (),
            pieces[1:],
            (*pieces, first),
            changed(claim="another"),
            changed(part="another"),
            changed(shape="another"),
            changed(assumptions=("another",)),
            changed(verdict=Verdict.HELD),
            changed(z3="unknown", cvc5="unknown", verdict=Verdict.PROVED),
            changed(z3="sat", cvc5="sat", verdict=Verdict.PROVED),
            changed(cvc5="unsat", verdict=Verdict.REFUTED),
        ]
        if first.verdict is Verdict.PROVED:
            wrong.append(changed(counts=Counts(1, 1, 1)))
        if first.finding is not None:
            wrong.append(changed(finding=None))
            wrong.append(changed(finding=replace(first.finding, claim="another")))
            wrong.append(changed(finding=replace(first.finding, target="another free")))
        for pieces_of_another in wrong:
            assert misfit(job, pieces_of_another, READS, "fake"), pieces_of_another
        for reads in IMPOSSIBLE:
            assert misfit(job, pieces, reads, "fake") == "it reads what no release has"
    assert seen == {Verdict.PROVED, Verdict.REFUTED}


def test_every_job_says_what_it_asks_without_running(tmp_path: Path) -> None:
    """Wrong: the name of a question that came to no end cannot be told."""
    release = ReleaseSource(write_release(tmp_path), OVERRIDES)
    for jobs in jobs_by_part(release, "fake", Scope(3, 3)).values():
        for job in jobs:
            assert questions_of(job)
            assert words_of(job)


def test_answers_are_the_same_through_the_pipe(tmp_path: Path) -> None:
    """Wrong: a verdict, a number or a case is changed on its way."""
    package = write_release(tmp_path, scheduler=FAULT)

    def results(here: Here | None) -> list[object]:
        report = check_source(
            package, "fake", parts=("free", "window", "row_range"), max_features=1, here=here
        )
        return [replace(result, milliseconds=0.0) for result in report.results]

    release = ReleaseSource(package, OVERRIDES)
    assert results(None) == results(Here(release, "fake", SCOPE))


def test_a_proof_is_written_to_the_letter() -> None:
    """Wrong: an answer that reads in two ways is taken for one."""
    piece = Piece("a-claim", "free", "1 feature", Verdict.PROVED, "unsat", "unsat")
    line = answer_line(2, Came(Settled((piece,), (("module", "a"),)))).removesuffix(b"\n")
    assert read_answer(line, 2) == Came(Settled((piece,), (("module", "a"),)))
    for change in (
        line.replace(b'"part":', b'"part":"V1","part":'),
        line.replace(b'"number":2', b'"number":2.0'),
        line.replace(b'"shape":"1 feature",', b""),
        line.replace(b":", b": ", 1),
        line.replace(b"[]", b"[ ]", 1),
    ):
        assert change != line
        with pytest.raises(NoAnswerError):
            read_answer(change, 2)
    with pytest.raises(NoAnswerError, match="answer to question 2, where 3 was asked"):
        read_answer(line, 3)
    assert isinstance(Answered(1, Done()), Answered)


def test_a_host_that_was_killed_is_an_error_once(tmp_path: Path) -> None:
    """Wrong: nothing can be proved any more, or the command waits for ever."""
    package = write_release(tmp_path)

    def prove() -> None:
        check_source(package, "fake", parts=("row_range",), max_features=1)

    prove()
    host = elsewhere._hosts[os.getpid()]
    _, _, (process, _), _ = host._end.peek()  # type: ignore[misc]
    process.kill()
    process.wait()
    with pytest.raises(NoAnswerError, match="the process that reads sources ended early"):
        prove()
    prove()
