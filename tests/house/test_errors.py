"""What an error of others says is told in one way: cut where it is long, and fit to be written."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from spec.errors import LONGEST_MESSAGE, LONGEST_NAME, class_of, described, message_of

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    path for room in ("spec", "impl", "proofs") for path in (ROOT / room).rglob("*.py")
)
THE_ONE = ROOT / "spec" / "errors.py"


def our_classes(trees: dict[Path, ast.Module]) -> set[str]:
    """Names of the classes that are defined here: what they say was written here."""
    nodes = (node for tree in trees.values() for node in ast.walk(tree))
    return {node.name for node in nodes if isinstance(node, ast.ClassDef)}


def told_as_they_are(tree: ast.Module, ours: set[str]) -> list[int]:
    """Lines that put the text of a caught error of others into words."""
    lines = []
    for handler in ast.walk(tree):
        if not isinstance(handler, ast.ExceptHandler) or handler.name is None:
            continue
        assert handler.type is not None
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        if all(isinstance(kind, ast.Name) and kind.id in ours for kind in kinds):
            continue
        for node in ast.walk(handler):
            match node:
                case ast.FormattedValue(value=ast.Name(id=name)) if name == handler.name:
                    lines.append(node.lineno)
                case ast.Call(func=ast.Name(id="str" | "repr"), args=[ast.Name(id=name)]) if (
                    name == handler.name
                ):
                    lines.append(node.lineno)
                case _:
                    pass
    return lines


def test_errors_of_others_are_told_by_one_function() -> None:
    """Wrong: a message that repeats 30 MB of input, or cannot be written, reaches a file whole."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
    ours = our_classes(trees)
    found = {
        path.relative_to(ROOT).as_posix(): lines
        for path, tree in trees.items()
        if path != THE_ONE and (lines := told_as_they_are(tree, ours))
    }
    assert found == {}


@pytest.mark.parametrize("told", ["str(error)", "repr(error)", 'f"so: {error}"'])
@pytest.mark.parametrize("caught", ["ValueError", "(OurError, OSError)", "yaml.YAMLError"])
def test_one_that_is_told_as_it_is_is_noticed(told: str, caught: str) -> None:
    """Wrong: the check cannot fail."""
    text = f"try:\n    pass\nexcept {caught} as error:\n    words = {told}\n"
    assert told_as_they_are(ast.parse(text), {"OurError"}) == [4]
    assert told_as_they_are(ast.parse(text.replace(caught, "OurError")), {"OurError"}) == []


class _Liar(str):
    def encode(self, *_: object) -> bytes:  # type: ignore[override]
        raise KeyboardInterrupt

    def __len__(self) -> int:
        return 1


class _TextError(Exception):
    def __str__(self) -> str:
        return _Liar("x" * 10_000)


class _SilentError(Exception):
    def __str__(self) -> str:
        raise ValueError


def test_what_an_error_says_is_cut_and_can_be_written() -> None:
    """Wrong: an error of code under test that is long, broken or a trap is told as it is."""
    assert len(message_of(_TextError())) < LONGEST_MESSAGE + 50
    assert message_of(_SilentError()) == "its message cannot be told"
    assert message_of(ValueError("\ud800")) == "?"
    long_name = type("N" * 10_000, (Exception,), {})()
    assert len(class_of(long_name)) < LONGEST_NAME + 50
    assert described(ValueError()) == "ValueError"
    assert described(long_name).encode()
