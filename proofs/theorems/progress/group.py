"""Progress: why correct rules always go on, and the exact conditions under which others stop."""

from __future__ import annotations

from proofs.smt.main import main_of_group
from proofs.smt.theorem import Group
from proofs.theorems.progress import blocks, chunk_ends, costs, going_on, pairs, settings
from proofs.theorems.progress.scene import NAME

GROUP = Group(
    NAME, parts=(going_on.PART, pairs.PART, blocks.PART, chunk_ends.PART, settings.PART, costs.PART)
)


if __name__ == "__main__":
    main_of_group(GROUP.name, GROUP.obligations)
