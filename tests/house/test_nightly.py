"""What is left to the nightly run is listed, and every run holds each kind of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support import nightly
from tests.support.nightly import LEFT, asks_all, fewer, sampled, summary, table

ROOT = Path(__file__).parents[2]
ASKING = {asks_all.__name__, sampled.__name__, fewer.__name__}
NAME = next(iter(LEFT))


def _asked_for(path: Path) -> Iterator[str | None]:
    """The names under which a file asks for what is left to the nightly run."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in ASKING:
            (name, *_) = node.args
            yield name.value if isinstance(name, ast.Constant) else None


def test_what_is_left_is_listed_for_the_file_that_leaves_it() -> None:
    """Wrong: a check that only the nightly run makes, and nobody was told; or an old list."""
    files = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    asked = {
        (name, path.relative_to(ROOT).as_posix())
        for path in files
        if path != Path(str(nightly.__file__))
        for name in _asked_for(path)
    }
    assert asked == {(name, left.file) for name, left in LEFT.items()}


def test_no_test_looks_at_the_profile_by_itself() -> None:
    """Wrong: a test that does less in every run than in a nightly one, past the list."""
    looking = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("*.py")
        if "get_current_profile_name" in path.read_text(encoding="utf-8")
    }
    assert looking == {"tests/support/nightly.py", "tests/house/test_nightly.py"}


def test_contributors_are_told_what_is_left() -> None:
    """Wrong: a green run is taken for more than it asked."""
    assert table() in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), (
        "CONTRIBUTING.md must hold this:\n" + table()
    )


def test_a_sample_holds_each_kind_and_a_nightly_run_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: a guard of which no mutant is tried, or a nightly run that does no more."""
    cases = [(1, "a"), (1, "b"), (2, "a"), (1, "a")]
    for is_nightly, expected in ((False, [(1, "a"), (2, "a")]), (True, cases)):
        monkeypatch.setattr(nightly, "is_nightly", partial(bool, is_nightly))
        assert sampled(NAME, cases, lambda case: case[0]) == expected
        assert asks_all(NAME) == is_nightly
        assert fewer(NAME) == settings.default.max_examples // (1 if is_nightly else 4)


def test_the_end_of_a_run_says_what_it_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: who reads the last lines of a run does not learn that it took samples."""
    monkeypatch.setattr(nightly, "is_nightly", lambda: False)
    line = summary()
    assert line is not None
    assert all(name in line for name in LEFT)
    assert "\n" not in line
    monkeypatch.setattr(nightly, "is_nightly", lambda: True)
    assert summary() is None


def test_what_is_not_listed_cannot_be_left() -> None:
    """Wrong: a test leaves something under a name that nobody explains."""
    with pytest.raises(KeyError):
        asks_all("something else")
