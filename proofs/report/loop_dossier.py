"""What is written about a run that breaks a claim: a test file for upstream, and its story."""

from __future__ import annotations

from pathlib import Path

from impl.target import Runner
from proofs.report.loop_ready_test import has_loop_ready_test, loop_ready_test
from proofs.report.loop_story import story
from spec.errors import InputError
from spec.loop.findings import LoopFinding
from spec.loop.steps import Trace
from spec.trace import write_atomically


def write_loop_dossier(
    finding: LoopFinding,
    trace: Trace,
    folder: Path,
    *,
    runners: tuple[Runner, ...],
) -> list[Path]:
    """Write the story of a finding on a real vLLM, and its ready test where there can be one.

    Args:
        finding: what was found.
        trace: the smallest run that shows it.
        folder: where the files go.
        runners: model runners that show it.

    Returns:
        The paths written: the story, then the test.

    Raises:
        InputError: a file cannot be written.
    """
    name = f"{finding.claim}-{finding.fingerprint}"
    test_file = folder / f"test_{name.replace('-', '_')}.py"
    text = _test(finding, trace, test_file.stem.removeprefix("test_"), runners)
    story_file = folder / f"{name}.md"
    test_name = None if text is None else test_file.name
    told = story(finding, trace.scenario, trace, test_name, runners=runners)
    write_atomically(story_file, told)
    if text is None:
        return [story_file]
    write_atomically(test_file, text)
    return [story_file, test_file]


def _test(finding: LoopFinding, trace: Trace, name: str, runners: tuple[Runner, ...]) -> str | None:
    if not has_loop_ready_test(finding.claim):
        return None
    try:
        return loop_ready_test(
            finding, trace.scenario, trace.target, trace.runner, name, runners=runners
        )
    except InputError:
        # The scenario breaks an assumption that the file cannot express.
        return None
