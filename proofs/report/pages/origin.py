"""Where a run comes from, and how it is made again."""

from __future__ import annotations

import shlex

from proofs.drive.origin import Origin
from proofs.report.pages.links import Links
from spec.record.run_findings import LoopFinding


def reproduce(origin: Origin, finding: LoopFinding, runner: str, links: Links) -> tuple[str, ...]:
    """Lines of shell that show the violation again, to be run in the report's folder.

    Args:
        origin: what was run.
        finding: what was found.
        runner: the worker's order and gathers.
        links: names of the files.
    """
    lines = []
    if links.test is not None:
        path = f"PYTHONPATH={_import_path(origin)} " if origin.is_vllm else ""
        lines.append(f"{path}python -m pytest {shlex.quote(links.test)}")
    file = links.trace if origin.recorded else links.scenario
    words = ["residency", "replay", file, *origin.options]
    if not origin.recorded:
        words += ["--runner", "both" if finding.claim == "runners-agree" else runner]
    return (*lines, shlex.join(words))


def environment_of(origin: Origin, links: Links) -> str:
    """Where :func:`reproduce` is to be run, if the stand-alone test needs more than pytest.

    Args:
        origin: what was run.
        links: names of the files.
    """
    return "" if origin.is_vllm or links.test is None else "in this project's environment"


def _import_path(origin: Origin) -> str:
    """Shell text that yields the folder to put on the path."""
    if origin.release is not None:
        return f'"$(residency vllm fetch {shlex.quote(origin.release)})"'
    return shlex.quote(str(origin.source))
