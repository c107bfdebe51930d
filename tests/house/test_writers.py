"""Whatever is printed for people goes through one place, which makes text from outside harmless."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

PRINTERS = {
    # The place itself, and annotations, which are commands to GitHub and escape what they hold.
    "proofs/describe/visible.py": {"click.echo"},
    "proofs/results/github.py": {"click.echo"},
    # Tables and lines of rich; what comes from outside passes table_text or harmless_lines.
    "proofs/commands/bench.py": {"console.print"},
    "proofs/results/result_table.py": {"console.print"},
    "proofs/smt/proving.py": {"console.print"},
    # Texts of our own alone.
    "proofs/commands/claims.py": {"console.print"},
    "proofs/ledger/claim_text.py": {"console.print"},
    "proofs/smt/main.py": {"console.print"},
}


def _printing(tree: ast.AST) -> Iterator[str]:
    """The calls that print."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            is_stream = name.endswith(("stdout.write", "stderr.write"))
            if is_stream or name.rpartition(".")[2] in ("print", "echo", "secho"):
                yield name


def test_nothing_is_printed_past_the_one_place() -> None:
    """Wrong: a new writer shows an identifier of a checkout as it is."""
    found = {}
    for room in ("spec", "impl", "proofs"):
        for path in sorted((ROOT / room).rglob("*.py")):
            calls = set(_printing(ast.parse(path.read_text(encoding="utf-8"))))
            if calls:
                found[path.relative_to(ROOT).as_posix()] = calls
    assert found == PRINTERS
