"""The house: no circle, no arrow up, one job a folder, a sign on each."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[2]
ROOMS = ("spec", "impl", "proofs")
MOST_MODULES = 16
"""In one folder, its sign apart: what a reader can look over at once."""

MOST_OF_A_NAME = 3
"""Modules that may have one name: a search for a file by its name leads to few."""

MOST_LINES_OF_README = 130
README = ROOT / "README.md"
MODULES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
FOLDERS = sorted({path.parent for path in MODULES})


@cache
def imports() -> dict[str, set[str]]:
    """What each module imports of the project, imports inside functions included."""
    graph = grimp.build_graph(*ROOMS, cache_dir=None)
    return {name: set(graph.find_modules_directly_imported_by(name)) for name in graph.modules}


def folder_arrows(modules: dict[str, set[str]]) -> dict[str, set[str]]:
    """Which folder knows which, from what each module imports."""
    folders = {name.rpartition(".")[0] for name in modules} | set(ROOMS)

    def folder(name: str) -> str:
        return name if name in folders else name.rpartition(".")[0]

    arrows: dict[str, set[str]] = defaultdict(set)
    for name, imported in modules.items():
        arrows[folder(name)] |= {folder(module) for module in imported} - {folder(name)}
    return arrows


def test_no_circle_of_modules() -> None:
    """Wrong: two modules can only be understood, moved or tested together."""
    TopologicalSorter(imports()).prepare()


def test_no_circle_of_folders() -> None:
    """Wrong: two folders know each other, so that neither has a job of its own."""
    TopologicalSorter(folder_arrows(imports())).prepare()


def test_a_circle_of_folders_is_noticed() -> None:
    """Wrong: the check cannot fail."""
    modules = {"spec.a.one": {"spec.b.two"}, "spec.b.two": set(), "spec.b.three": {"spec.a.one"}}
    TopologicalSorter(modules).prepare()
    with pytest.raises(CycleError):
        TopologicalSorter(folder_arrows(modules)).prepare()


def test_every_arrow_points_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: a lower room knows a higher one, or the reference calls the rules that judge it."""
    monkeypatch.chdir(ROOT)
    assert lint_imports(no_cache=True, no_logo=True) == 0


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_folder_has_a_sign(folder: Path) -> None:
    """Wrong: nobody can tell what goes into a folder, and what does not."""
    sign = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    assert sign
    assert "TODO" not in sign


def test_each_folder_can_be_looked_over() -> None:
    """Wrong: a folder holds more than one job, or has grown past what a reader looks over."""
    sizes = Counter(path.parent for path in MODULES if path.name != "__init__.py")
    assert {path: size for path, size in sizes.items() if size > MOST_MODULES} == {}


def test_a_name_leads_to_one_place() -> None:
    """Wrong: a reader who looks for a module by its name finds many."""
    names = Counter(path.name for path in MODULES if not path.name.startswith("__"))
    assert {name: number for name, number in names.items() if number > MOST_OF_A_NAME} == {}


def test_the_readme_fits_its_reader() -> None:
    """Wrong: whoever has a pull request open scrolls for what they came for."""
    assert len(README.read_text(encoding="utf-8").splitlines()) <= MOST_LINES_OF_README
