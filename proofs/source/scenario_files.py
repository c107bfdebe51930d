"""Write the scenarios that counterexamples of whole runs are, for the commands that replay them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from impl.vllm.launch.source import Source
from spec.functions.case_files import write_atomically
from spec.functions.findings import Finding
from spec.record.document import dumps_scenario
from spec.record.scenario import Scenario


def write_scenarios(findings: Iterable[Finding], folder: Path) -> list[Path]:
    """Write each scenario to a file of its own; findings on single calls have none.

    Args:
        findings: what was refuted on a source.
        folder: where to write; made when it is not there.

    Returns:
        The files, each once: equal scenarios of one claim share one.

    Raises:
        InputError: a file cannot be written.
    """
    written: dict[Path, None] = {}
    for finding in findings:
        if isinstance(finding.case, Scenario):
            config = finding.target.rpartition("runs")[2].strip().replace(" ", "-") or "plain"
            path = folder / f"{finding.claim}-{config}-{finding.fingerprint}.scenario.json"
            write_atomically(path, dumps_scenario(finding.case))
            written[path] = None
    return list(written)


def replay_commands(paths: Iterable[Path], source: Source) -> list[str]:
    """The command that runs each file again on the real engine of that vLLM."""
    if source.release is None:
        where = f"--source {source.package.parent}"
    else:
        where = f"--release {source.release}"
    return [f"residency replay {path} --target vllm {where}" for path in paths]
