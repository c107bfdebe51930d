"""Records, written by ``tests/recorders`` and never by hand.

What releases show, what the explorer counts, each fault's scenario and run, what was found in the
newest release. They are data of the package, so that ``residency sweep`` has them without a
checkout. Nothing here is code; commands, the ledger and tests read it by the paths below.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
SCENARIOS = FOLDER / "scenarios"
FOUND = FOLDER / "found"
PICTURES = FOLDER / "pictures"
