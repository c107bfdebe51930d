"""The files in the folder of a report on a run, and the commands that make the run again there."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from proofs.drive.origin import Origin
from spec.record.run_findings import LoopFinding


@dataclass(frozen=True)
class Links:
    """Files of a report, relative to its folder.

    Attributes:
        page: the page.
        markdown: the text for a pull request.
        trace: the run.
        itf: the run in the Informal Trace Format.
        scenario: what was chosen from outside.
        test: the stand-alone test; ``None`` where there can be none.
        index: the page over all reports.
    """

    page: str = "report.html"
    markdown: str = "report.md"
    trace: str = "trace.json"
    itf: str = "trace.itf.json"
    scenario: str = "scenario.json"
    test: str | None = "test_repro.py"
    index: str = "../index.html"

    @property
    def all(self) -> tuple[str, ...]:
        """The files of the folder, in the order in which a reader wants them."""
        names = (self.page, self.markdown, self.test, self.scenario, self.trace, self.itf)
        return tuple(name for name in names if name is not None)


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
        path = f"PYTHONPATH={import_path(origin)} " if origin.is_vllm else ""
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


def import_path(origin: Origin) -> str:
    """Shell text that yields the folder to put on ``PYTHONPATH``: one that holds only ``vllm``."""
    named = origin.release or f"--source {shlex.quote(str(origin.source))}"
    return f'"$(residency vllm fetch {named})"'
