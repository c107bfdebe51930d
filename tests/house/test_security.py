"""Each attack that the page on security lists has its verdict, and tests that are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security.md"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
_VERDICTS = ("defended", "not defended")


def rows(page: str) -> list[tuple[str, str, str]]:
    """Attack, what becomes of it, and tests, of each line of the table."""
    table = page.partition("## Attacks, and the test of each")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    cells = [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines[2:]]
    assert all(len(row) == 3 for row in cells), cells
    return [(attack, fate, tests) for attack, fate, tests in cells]


@cache
def names_in(file: str) -> set[str]:
    """Names of the tests of a file; none where there is no such file."""
    path = ROOT / file
    if not path.is_file():
        return set()
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef)}


ROWS = rows(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("attack", "fate", "tests"), ROWS, ids=[row[0] for row in ROWS])
def test_an_attack_names_its_verdict_and_its_tests(attack: str, fate: str, tests: str) -> None:
    """Wrong: the page promises what no test holds, or leaves open whether it is defended."""
    assert attack
    assert fate.startswith(_VERDICTS)
    named = _TEST.findall(tests)
    assert named
    assert len(named) == len(tests.split("<br>"))
    missing = [f"{file}::{name}" for file, name in named if name not in names_in(file)]
    assert missing == []


def test_the_page_has_its_table() -> None:
    """Wrong: the table is read as empty, so that nothing is held."""
    assert len(ROWS) > 25
    assert not names_in("tests/house/test_nowhere.py")
    assert "test_the_page_has_its_table" in names_in("tests/house/test_security.py")
