"""The digest of the code that made a result: it covers all that runs, and changes with it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from proofs.results.code_digest import code_digest

ROOT = Path(__file__).parents[2]

IMPORTED = """
import importlib, json, sys
importlib.import_module(sys.argv[1])
from proofs.results import code_digest
files = {code_digest._file(name) for name in sys.modules if code_digest._is_ours(name)}
covered = {code_digest._file(name) for name in code_digest._all_imported((sys.argv[1],))}
print(json.dumps(sorted(str(file) for file in files - covered)))
"""


@pytest.mark.parametrize("module", ["proofs.explore.chunk", "proofs.releases.sweep"])
def test_whatever_is_imported_is_covered(module: str) -> None:
    """Wrong: code that makes a kept result is changed, and the old result is shown as new."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, module],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    itself = {"results/__init__.py", "results/code_digest.py"}
    left = {Path(name).relative_to(ROOT / "proofs").as_posix() for name in json.loads(done.stdout)}
    assert left <= itself


def _house(folder: Path) -> Path:
    """A copy of the digest's module in a house of a few modules."""
    for name, text in {
        "spec/__init__.py": "",
        "spec/rule.py": "LIMIT = 1\n",
        "spec/apart.py": "",
        "impl/__init__.py": "",
        "impl/late.py": "",
        "proofs/__init__.py": "",
        "proofs/job.py": "from spec import rule\n\ndef work():\n    import impl.late\n",
        "proofs/results/__init__.py": "",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    shutil.copy(ROOT / "proofs/results/code_digest.py", folder / "proofs/results")
    return folder


def _digest(house: Path) -> str:
    program = "from proofs.results.code_digest import code_digest; print(code_digest('proofs.job'))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=house, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_only_what_takes_part_changes_it(tmp_path: Path) -> None:
    """Wrong: a change of the code goes unnoticed, or one elsewhere throws hours of work away."""
    house = _house(tmp_path / "house")
    before = _digest(house)
    assert len(before) == 16
    (house / "spec" / "apart.py").write_text("LIMIT = 3\n")
    assert _digest(house) == before
    seen = {before}
    for name in ("spec/rule.py", "spec/__init__.py", "impl/late.py", "proofs/job.py"):
        file = house / name
        file.write_text(file.read_text() + "# changed\n")
        seen.add(_digest(house))
    assert len(seen) == 5


def test_an_unknown_module_has_none() -> None:
    """Wrong: a module that was renamed leaves a digest of nothing, which never changes."""
    with pytest.raises(ValueError, match=r"no module proofs\.gone"):
        code_digest("proofs.gone")
    with pytest.raises(ValueError, match="no module torch"):
        code_digest("torch")
