"""Names of the files of one report, as they lie in its folder."""

from __future__ import annotations

from dataclasses import dataclass


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
