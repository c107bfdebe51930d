"""Record what the README's slow commands print on release 0.23.0; never by hand.

    python -m tests.recorders.record_readme [--check]

A test compares the README with these records, and what is quick it runs. ``--check`` compares with
the records instead of writing them, and exits with 1 where they differ. Both take minutes.
"""

from __future__ import annotations

import re
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

from proofs.commands.main import main
from tests.recorders.record_docs import README
from tests.recorders.recording import write_or_compare

FOLDER = Path(__file__).parent / "outputs"
RECORDED = ("check", "prove")
"""Subcommands that take a minute or more; the others' outputs are made anew by the tests."""

ELLIPSIS = "..."
"""Stands for any number of lines."""


class Shown(NamedTuple):
    """A command that a page shows, and the lines that it shows of its output."""

    arguments: list[str]
    lines: list[str]

    @property
    def subcommand(self) -> str:
        """Such as ``check``."""
        return self.arguments[0]

    def fits(self, output: str) -> bool:
        """Whether the output begins with the shown lines, and ends with them, gaps apart."""
        parts = [re.escape(line) + "\n" for line in self.lines]
        gap = re.escape(ELLIPSIS) + "\n"
        pattern = "".join(r"(?:.*\n)*?" if part == gap else part for part in parts)
        return re.fullmatch(pattern, output) is not None


def shown_in(text: str) -> list[Shown]:
    """The commands of a page's ``console`` blocks with what is shown of their output."""
    found = []
    for block in re.findall(r"^```console\n\$ residency (.*?)^```", text, re.DOTALL | re.MULTILINE):
        command, *lines = block.splitlines()
        found.append(Shown(shlex.split(command), lines))
    return found


def output_of(shown: Shown) -> str:
    """What the command prints."""
    return CliRunner().invoke(main, shown.arguments).output


if __name__ == "__main__":
    codes = [
        write_or_compare(
            FOLDER / f"{shown.subcommand}.txt",
            partial(output_of, shown),
            "tests.recorders.record_readme",
            __doc__,
        )
        for shown in shown_in(README.read_text(encoding="utf-8"))
        if shown.subcommand in RECORDED
    ]
    sys.exit(max(codes))
