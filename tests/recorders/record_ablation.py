"""Record the ablation matrix; never by hand.

    python -m tests.recorders.record_ablation [--check]

``--check`` compares with the record instead of writing it, and exits with 1 where they differ. It
takes about 40 seconds of one core.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from proofs.ablate.cells import cells
from proofs.ablate.matrix import decided_cells, to_json
from proofs.ablate.matrix_text import matrix_lines
from proofs.recorded import FOLDER
from tests.recorders.recording import write_or_compare

RECORD = FOLDER / "ablation.json"


def recorded() -> dict[str, Any]:
    """The record: the table as it is printed, and every cell with its two answers."""
    data: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return data


def text() -> str:
    """What the record should be; one cell a line, so that a change shows as such."""
    decided = list(decided_cells(list(cells())))
    whole = to_json(decided)
    lines = ",\n".join("  " + json.dumps(cell) for cell in whole["cells"])
    table = ",\n".join("  " + json.dumps(line) for line in matrix_lines(decided))
    head = f'{{\n "schema": {whole["schema"]},\n "level": "{whole["level"]}",\n'
    return f'{head} "table": [\n{table}\n ],\n "cells": [\n{lines}\n ]\n}}\n'


if __name__ == "__main__":
    sys.exit(write_or_compare(RECORD, text, "tests.recorders.record_ablation", __doc__))
