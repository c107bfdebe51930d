"""Clean-ups of a release change no verdict, unless to one that says why there is none."""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from proofs.commands.main import main
from proofs.source.answers import Answers
from proofs.source.check import SourceReport, check_source
from proofs.source.code.recorders import OVERRIDES
from proofs.source.code.release import ReleaseSource
from proofs.source.here import Here
from proofs.source.jobs import Scope
from proofs.source.passes.run_scenario import FEW_PASSES
from spec.verdict import Verdict
from tests.support.refactorings import REFACTORINGS, Refactoring, parsed
from tests.support.releases import ask, require_release
from tests.vllm.test_vllm_adapter import NEWEST, edited
from tests.vllm.test_vllm_target import run_python

RELEASE = NEWEST
PARTS = ("free", "window", "row_range")
"""What the source is proved of here: the least that answers in a second."""

OBSERVE = """
import json, sys
from pathlib import Path
from impl.target import RUNNERS
from impl.vllm.functions.target import VllmTarget
from impl.vllm.launch.source import cache_folder, from_directory, unpacked
from impl.vllm.runs.target import VllmLoop
from proofs.run.digest import digest
from proofs.run.judge import run_and_judge
from proofs.search.functions.check import run_check
from proofs.search.functions.results import CheckSettings
from proofs.search.runs.draws import draw
from proofs.search.runs.results import LoopCheckSettings

where = sys.argv[2]
if where == "release":
    source = unpacked(cache_folder(), sys.argv[1])
else:
    source = from_directory(Path(where), Path(where).parent / "cache")
runs = {}
loop = VllmLoop(source)
for number in range(24):
    judged = run_and_judge(loop, draw(LoopCheckSettings(seed=7), number).scenario, RUNNERS, None)
    for runner, trace in judged.traces.items():
        found = sorted({finding.claim for finding in judged.findings.get(runner, ())})
        runs[f"{number} {runner}"] = [found, digest(trace)]
    for runner, why in judged.failed.items():
        runs[f"{number} {runner}"] = ["ERROR", why]
report = run_check(VllmTarget(source), CheckSettings(examples=25))
functions = {
    f"{result.part} {result.claim}": [result.verdict.name, result.reason or ""]
    for result in report.results
}
print("RESULT" + json.dumps({"runs": runs, "functions": functions}))
"""


def _refactored(kinds: tuple[Refactoring, ...]) -> dict[str, ast.Module]:
    modules = parsed(require_release(RELEASE).package)
    for kind in kinds:
        assert kind.change(modules) > 0, f"nothing to change: {kind.name}"
    # Lines and columns are those of the new text, as in a checkout.
    return {name: ast.parse(ast.unparse(tree)) for name, tree in modules.items()}


def _checkout(folder: Path, kinds: tuple[Refactoring, ...]) -> Path:
    """A copy of the release with some refactorings; unchanged files are links."""
    edited(folder)
    for name, tree in _refactored(kinds).items():
        file = folder / "vllm" / f"{name.replace('.', '/')}.py"
        file.unlink()
        file.write_text(ast.unparse(tree), encoding="utf-8")
    return folder


@cache
def _of_the_release() -> dict[str, Any]:
    require_release(RELEASE)
    found: dict[str, Any] = ask(RELEASE, OBSERVE, "release")
    return found


@pytest.mark.vllm
def test_all_at_once_change_no_run_and_no_verdict(tmp_path: Path) -> None:
    """Wrong: a clean-up of the release is told as a fault, or hides one."""
    before = _of_the_release()
    done = run_python(OBSERVE, RELEASE, str(_checkout(tmp_path / "tree", REFACTORINGS)))
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT"))
    after = json.loads(line.removeprefix("RESULT"))
    assert after["runs"].keys() == before["runs"].keys()
    assert {name: (before["runs"][name], seen) for name, seen in after["runs"].items()} == {
        name: (seen, seen) for name, seen in before["runs"].items()
    }
    assert after["functions"].keys() == before["functions"].keys()
    for name, (verdict, reason) in after["functions"].items():
        assert verdict == before["functions"][name][0] or (verdict == "ERROR" and reason), name


@pytest.mark.vllm
def test_an_untouched_copy_is_told_to_be_equal(tmp_path: Path) -> None:
    """Wrong: the recipe for a pull request is red although nothing changed."""
    edited(tmp_path / "tree")
    line = f"check --target vllm --level loop --release {RELEASE} --against {tmp_path / 'tree'}"
    # Both runners swallow a miss inside the range or raise, on draws that a release takes.
    options = ["--claims", "interior-miss-raises", "--examples", "60"]
    result = CliRunner().invoke(main, [*line.split(), *options])
    assert result.exit_code == 0, result.output
    assert "2 questions: 2 HELD" in result.output
    assert "behaviour: the same in " in result.output


def _verdicts(report: SourceReport) -> dict[tuple[str, str], tuple[Verdict, str]]:
    return {(r.part, r.claim): (r.verdict, r.detail) for r in report.results if not r.is_rule}


def _proved(changed: dict[str, ast.Module] | None) -> dict[tuple[str, str], tuple[Verdict, str]]:
    named = {f"vllm.{name}": tree for name, tree in (changed or {}).items()}
    package = require_release(RELEASE).package
    release = ReleaseSource(package, OVERRIDES, named)
    return _verdicts(
        check_source(
            package,
            RELEASE,
            here=Here(release, RELEASE, Scope(2, FEW_PASSES)),
            parts=PARTS,
            max_features=2,
            workers=1,
            answers=Answers(),
        )
    )


@pytest.mark.vllm
@pytest.mark.parametrize("kind", REFACTORINGS, ids=lambda kind: kind.name)
def test_a_proof_of_the_source_changes_none_of_its_answers(kind: Refactoring) -> None:
    """Wrong: code that does the same is refuted, or a refuted claim is proved of it."""
    before, after = _proved(None), _proved(_refactored((kind,)))
    assert after.keys() == before.keys()
    for name, (verdict, detail) in after.items():
        same = verdict is before[name][0]
        assert same or (verdict in (Verdict.UNKNOWN, Verdict.ERROR) and detail), (name, detail)
