"""How tests are shared out among processes."""

from __future__ import annotations

from pathlib import Path

from tests.support.sharing_out import ASK_RELEASES, ROOT, missing_files, together


def test_the_files_that_are_named_are_there() -> None:
    """Wrong: a file that was moved begins last, or imports a release once more."""
    assert missing_files() == []


def test_who_asks_a_release_goes_with_the_others() -> None:
    """Wrong: each process imports each release."""
    asking = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("test_*.py")
        if _asks(path)
    }
    assert asking
    assert {together(f"{file}::test") for file in asking} == {ASK_RELEASES}
    assert (
        together("tests/house/test_sharing_out.py::test[::]") == "tests/house/test_sharing_out.py"
    )


def _asks(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return any(f"{name}(" in text for name in (" ask", "observed_apart", "differences_apart"))
