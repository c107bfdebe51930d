"""What the exhaustive search was recorded to have seen; nothing until it was recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofs.recorded import FOLDER
from spec.verdict import Verdict

EXPLORED = FOLDER / "explore.json"


@dataclass(frozen=True)
class Explored:
    """A recorded exhaustive search.

    Attributes:
        scope: what was explored, by name and size.
        claims: claims that held in every state and step, and whose premise happened.
        faults: by switch, the claims that it breaks there.
        unseen: by switch that breaks none, why.
    """

    scope: str
    claims: tuple[str, ...]
    faults: Mapping[str, tuple[str, ...]]
    unseen: Mapping[str, str]

    def breaking(self, claim_id: str) -> tuple[str, ...]:
        """Switches that break a claim."""
        return tuple(name for name, claims in self.faults.items() if claim_id in claims)


def recorded_exploration(file: Path) -> Explored | None:
    """The record of the default scope; ``None`` where there is none yet."""
    if not file.exists():
        return None
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    held = tuple(claim for claim, verdict in data["claims"].items() if verdict == Verdict.HELD.name)
    faults = {name: tuple(found["claims"]) for name, found in data["faults"].items()}
    totals = data["totals"]
    scope = f"the {data['scope']} scope ({totals['cases']:,} cases, {totals['states']:,} states)"
    return Explored(scope, held, faults, data["unseen"])
