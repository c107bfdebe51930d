"""A digest of the code that makes a result, for whatever keeps results.

A result that is kept and used again must come from the same code. What that is follows from the
imports: the modules that make it, and all modules of this project that they import.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_ROOMS = ("spec", "impl", "proofs")
_DIGITS = 16


@cache
def code_digest(*modules: str) -> str:
    """Sixteen hexadecimal digits over the source of some modules, and of all that they import.

    Args:
        modules: full names, such as ``proofs.explore.chunk``. Imports within functions count, and
            so do those that only annotations need.

    Raises:
        ValueError: there is no such module of this project.
    """
    for name in modules:
        if _file(name) is None:
            raise ValueError(f"this project has no module {name}")
    digest = hashlib.sha256()
    for name in sorted(_all_imported(modules)):
        file = _file(name)
        assert file is not None
        source = file.read_bytes()
        digest.update(f"{name}\0{len(source)}\0".encode())
        digest.update(source)
    return digest.hexdigest()[:_DIGITS]


def _all_imported(modules: tuple[str, ...]) -> set[str]:
    """The modules, all that they import, and the packages that these lie in."""
    found: set[str] = set()
    left = list(modules)
    while left:
        name = left.pop()
        if name in found or _file(name) is None:
            continue
        found.add(name)
        left += _imported(name)
        left += [name.rpartition(".")[0]] if "." in name else []
    return found


@cache
def _imported(name: str) -> tuple[str, ...]:
    """What a module imports of this project; names of attributes are among them."""
    file = _file(name)
    assert file is not None
    return tuple(_names(ast.parse(file.read_bytes()), name))


def _names(tree: ast.AST, importer: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _is_ours(alias.name))
        elif isinstance(node, ast.ImportFrom):
            # The house has no relative imports; one would be missing here, and change the code
            # without the digest.
            assert node.module is not None, f"a relative import in {importer}"
            assert not node.level, f"a relative import in {importer}"
            if _is_ours(node.module):
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in _ROOMS


def _file(name: str) -> Path | None:
    """The source of a module or package of this project; ``None`` where there is none."""
    if not _is_ours(name):
        return None
    path = _ROOT.joinpath(*name.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None
