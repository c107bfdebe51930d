"""Answers of earlier runs: used where nothing that they rest on has changed, and only there."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from proofs.commands.main import main
from proofs.source import answers as kept_answers
from proofs.source.answers import Answers
from proofs.source.check import SourceReport, check_source
from proofs.source.code.encoder_passes import TRY_METHOD, require_known_calls
from proofs.source.code.release import ReleaseSource
from spec.verdict import Verdict
from tests.support.fake_release import write_release

WRONG_FREE = (" - request.num_output_placeholders", "")
PARTS = ("free", "window")
SHIFT = "shift_computed_tokens=self.num_prefill_lookahead"


def _report(
    package: Path, answers: Answers | None, *parts: str, name: str = "a release"
) -> SourceReport:
    return check_source(
        package, name, parts=parts or PARTS, max_features=1, workers=1, answers=answers
    )


def _without_times(report: SourceReport) -> SourceReport:
    results = tuple(replace(result, milliseconds=0.0) for result in report.results)
    return replace(report, results=results, num_kept=0)


def test_kept_answers_are_those_that_are_found_again(tmp_path: Path) -> None:
    """Wrong: a verdict, a formula or a counterexample that depends on what was run before."""
    package = write_release(tmp_path / "wrong", scheduler=WRONG_FREE)
    answers = Answers(tmp_path / "answers")
    first, again = _report(package, answers), _report(package, answers)
    assert (first.num_kept, again.num_kept) == (0, again.num_questions)
    plain = _report(package, None)
    assert plain.num_kept == 0
    assert _without_times(first) == _without_times(again) == _without_times(plain)
    assert {result.verdict for result in plain.results} == {Verdict.PROVED, Verdict.REFUTED}


def test_releases_that_are_the_same_share_answers_under_their_own_names(tmp_path: Path) -> None:
    """Wrong: a counterexample of one release that is told of another."""
    answers = Answers(tmp_path / "answers")
    first = _report(
        write_release(tmp_path / "1", scheduler=WRONG_FREE), answers, name="one release"
    )
    package = write_release(tmp_path / "2", scheduler=WRONG_FREE)
    second = _report(package, answers, name="another release")
    assert second.num_kept == first.num_questions
    targets = {result.finding.target for result in second.results if result.finding}
    assert targets == {"another release free past the prompt"}


@pytest.mark.parametrize(
    ("change", "num_asked"),
    [
        ({"scheduler": WRONG_FREE}, 2),
        ({"utils": ("bisect_right(ends, start)", "bisect_right(ends, start + 1)")}, 1),
        ({"scheduler": ("class Scheduler:", "# A comment is not read.\nclass Scheduler:")}, 0),
        ({"encoder_cache_manager": ("if wanted > budget:", "if wanted > budget + 1:")}, 0),
    ],
)
def test_a_changed_line_is_asked_about_where_it_is_read(
    tmp_path: Path, change: dict[str, tuple[str, str]], num_asked: int
) -> None:
    """Wrong: a changed function keeps the verdict of the old one; or all is asked for nothing."""
    answers = Answers(tmp_path / "answers")
    right = _report(write_release(tmp_path / "right"), answers)
    package = write_release(tmp_path / "changed", **change)
    changed = _report(package, answers)
    assert changed.num_questions - changed.num_kept == num_asked
    assert _without_times(changed) == _without_times(_report(package, None))
    assert (_without_times(changed).results == _without_times(right).results) == (num_asked == 0)


@pytest.mark.parametrize(
    ("schedule", "is_kept"),
    [
        (f"tokens = 2; self.{TRY_METHOD}(request, {SHIFT})", True),
        (f"self.{TRY_METHOD}(request, shift_computed_tokens=0)", False),
        (f"self.{TRY_METHOD}(request, {SHIFT}); self.{TRY_METHOD}(request, {SHIFT})", False),
        ("pass", False),
    ],
)
def test_of_the_whole_pass_only_the_calls_of_what_is_proved_are_read(
    tmp_path: Path, schedule: str, is_kept: bool
) -> None:
    """Wrong: any change of a pass asks all again, or one that calls otherwise keeps its answer."""

    def release(name: str, body: str) -> ReleaseSource:
        with_pass = f"class Scheduler:\n    def schedule(self):\n        {body}\n"
        package = write_release(tmp_path / name, scheduler=("class Scheduler:", with_pass))
        return ReleaseSource(package, {})

    answers = Answers(tmp_path / "answers")
    before = release("before", f"self.{TRY_METHOD}(request, {SHIFT})")
    answers.keep(_known_calls, before, "a release", kept_answers.ask(_known_calls, before))
    found = answers.find(_known_calls, release("after", schedule), "a release")
    assert found == (() if is_kept else None)


def _known_calls(release: ReleaseSource) -> tuple[()]:
    require_known_calls(release)
    return ()


def test_changed_code_of_ours_asks_everything_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong: a mended proof that goes on telling what the broken one found."""
    package, answers = write_release(tmp_path), Answers(tmp_path / "answers")
    _report(package, answers)
    kept_answers._made_by.cache_clear()
    monkeypatch.setattr(kept_answers, "code_digest", lambda _: "other code")
    assert _report(package, answers).num_kept == 0
    kept_answers._made_by.cache_clear()


def test_what_makes_an_answer_is_in_its_key() -> None:
    """Wrong: a solver's new version, or a changed module, that the keys do not know of."""
    digest, *_ = kept_answers._made_by()
    assert digest == kept_answers.code_digest("proofs.source.check")
    names = set(kept_answers._MADE_WITH)
    assert {"z3-solver", "cvc5", "numpy"} <= names


def test_what_is_not_settled_is_not_kept(tmp_path: Path) -> None:
    """Wrong: a solver that gave up once, or a gap of ours, that is never tried again."""
    change = ("end <= seen", "end in range(seen)")
    package = write_release(tmp_path, scheduler=change)
    answers = Answers(tmp_path / "answers")
    for _ in range(2):
        report = _report(package, answers, "free")
        assert {result.verdict for result in report.results} == {Verdict.UNKNOWN}
        assert report.num_kept == 0
    assert not (tmp_path / "answers").exists()


def test_a_damaged_file_is_asked_about_again(tmp_path: Path) -> None:
    """Wrong: a command that breaks down, or believes, what was cut short on a full disk."""
    package, folder = write_release(tmp_path), tmp_path / "answers"
    _report(package, Answers(folder), "free")
    for file in folder.iterdir():
        file.write_text(file.read_text(encoding="utf-8")[:-1], encoding="utf-8")
    again = _report(package, Answers(folder), "free")
    assert again.num_kept == 0
    assert _report(package, Answers(folder), "free").num_kept == again.num_questions


def test_a_folder_that_cannot_be_written_to_costs_time_only(tmp_path: Path) -> None:
    """Wrong: a read-only home ends the command."""
    (tmp_path / "answers").write_text("a file", encoding="utf-8")
    report = _report(write_release(tmp_path), Answers(tmp_path / "answers" / "below"), "free")
    assert {result.verdict for result in report.results} == {Verdict.PROVED}


def test_the_folder_stays_small(tmp_path: Path) -> None:
    """Wrong: years of answers in a user's cache folder."""
    package, folder = write_release(tmp_path), tmp_path / "answers"
    _report(package, Answers(folder))
    size = sum(file.stat().st_size for file in folder.iterdir())
    _report(package, Answers(folder, most_bytes=size // 2), "row_range")
    assert sum(file.stat().st_size for file in folder.iterdir()) <= size // 2


def test_a_question_that_has_no_words_is_not_kept(tmp_path: Path) -> None:
    """Wrong: two questions that differ in an object without words share an answer."""
    package, answers = write_release(tmp_path), Answers(tmp_path / "answers")
    release = kept_answers.ReleaseSource(package, {})
    job = partial(_nothing, about=object())
    answers.keep(job, release, "a release", kept_answers.ask(job, release))
    assert answers.find(job, release, "a release") is None
    job = partial(_nothing, about=None)
    answers.keep(job, release, "a release", kept_answers.ask(job, release))
    assert answers.find(job, release, "a release") == ()


def _nothing(_release: object, about: object) -> tuple[()]:
    del about
    return ()


def test_the_command_tells_how_many_answers_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong: nobody sees that a proof is an earlier one, or can have it made again."""
    monkeypatch.setattr(kept_answers, "user_cache_path", lambda _: tmp_path / "cache")
    package = write_release(tmp_path)
    command = ["prove", "--source-of", str(package.parent), "--claim", "freed-not-needed"]
    first, second, anew = (
        CliRunner().invoke(main, [*command, *more]) for more in ([], [], ["--no-cache"])
    )
    assert first.exit_code == second.exit_code == anew.exit_code == 0
    assert first.stdout == second.stdout == anew.stdout
    assert "answers are from earlier runs (--no-cache asks again)" in second.stderr
    assert "earlier runs" not in first.stderr + anew.stderr
