"""``residency report --diff``: two runs of one scenario, recorded or made here, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from impl.target import Runner
from impl.tensors import TensorSettings
from proofs.describe.visible import print_lines
from proofs.drive.documents import kind_of, load_document, run_document
from proofs.drive.replay import RunnerChoice
from proofs.report.near.comparison import Compared
from proofs.report.pages.comparison import (
    comparison_lines,
    comparison_markdown,
    comparison_page,
)
from proofs.results.github import append_summary
from proofs.run.targets import TargetChoice
from spec.errors import InputError
from spec.functions.case_files import write_atomically
from spec.record.document import ScenarioDocument, TraceDocument
from spec.record.steps import Trace
from spec.verdict import Verdict, exit_code


def runs_to_compare(
    files: Sequence[Path],
    choices: Sequence[TargetChoice],
    runner: RunnerChoice,
    settings: TensorSettings | None,
    max_passes: int,
) -> tuple[Trace, Trace]:
    """The two runs to compare: recorded ones, or one scenario on two targets.

    Raises:
        InputError: not two, or a run that cannot be made.
    """
    if len(files) == 2:
        if choices:
            raise InputError("two traces are compared as they are; leave the target's options out")
        first, second = (_recorded(path) for path in files)
        return first, second
    if len(files) != 1 or len(choices) != 2:
        raise InputError(
            "--diff takes two traces, or one scenario and two targets (two of --release, --source "
            "and --target reference)"
        )
    if runner == "both":
        raise InputError("--diff compares runs of one runner; give --runner V1 or V2")
    document = load_document(files[0])
    if not isinstance(document, (ScenarioDocument, TraceDocument)):
        raise InputError(f"{files[0]}: a function-level case makes no run; give a scenario")
    scenario = ScenarioDocument(1, "scenario", document.scenario)
    first, second = (_run(scenario, choice, runner, settings, max_passes) for choice in choices)
    return first, second


def _recorded(path: Path) -> Trace:
    document = load_document(path)
    if not isinstance(document, TraceDocument):
        raise InputError(
            f"{path}: holds a {kind_of(document)} and no run; `residency replay {path} --trace "
            "FILE` makes one"
        )
    return document.trace


def _run(
    scenario: ScenarioDocument,
    choice: TargetChoice,
    runner: Runner,
    settings: TensorSettings | None,
    max_passes: int,
) -> Trace:
    replay = run_document(scenario, choice, (runner,), settings, max_passes)
    (run,) = replay.replayed
    if run.trace is None:
        raise InputError(f"{replay.target}: {run.reason}")
    return run.trace


def write_comparison(compared: Compared, folder: Path) -> int:
    """Print the comparison and write its files; the exit code.

    Raises:
        InputError: a file cannot be written.
    """
    for line in comparison_lines(compared):
        print_lines(line)
    text = comparison_markdown(compared)
    for name, content in (("diff.html", comparison_page(compared)), ("diff.md", text)):
        write_atomically(folder / name, content)
        print_lines(f"wrote {folder / name}")
    append_summary([text])
    return exit_code([Verdict.REFUTED if compared.new else Verdict.HELD])
