"""Reports with the page over all of them, as a command leaves them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proofs.drive.origin import Origin
from proofs.report.pages.index import Written, write_index


def write_all(written: Sequence[Written], folder: Path, origin: Origin) -> list[Path]:
    """Write the page over all; the files of the reports, that page last."""
    index = write_index(folder, written, origin)
    return [*(path for report in written for path in report.paths), index]
