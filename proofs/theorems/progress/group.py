"""Progress: why correct rules always go on, and the exact conditions under which others stop."""

from __future__ import annotations

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Obligation
from proofs.theorems.progress import aligned as stuck_alignment
from proofs.theorems.progress import alone as stuck_singles
from proofs.theorems.progress import boundaries as stuck_boundaries
from proofs.theorems.progress import chunk_ends as stuck_ends
from proofs.theorems.progress import chunks as progress_chunks
from proofs.theorems.progress import costs
from proofs.theorems.progress import each_other as stuck_each_other
from proofs.theorems.progress import last_blocks as stuck_last_blocks
from proofs.theorems.progress import neighbours as stuck_neighbours
from proofs.theorems.progress import order as progress_order
from proofs.theorems.progress import reservation as stuck_reservation
from proofs.theorems.progress import settings as stuck_settings
from proofs.theorems.progress.scene import GROUP

OBLIGATIONS: tuple[Obligation, ...] = (
    *progress_order.OBLIGATIONS,
    *progress_chunks.OBLIGATIONS,
    *stuck_neighbours.OBLIGATIONS,
    *stuck_reservation.OBLIGATIONS,
    *stuck_alignment.OBLIGATIONS,
    *stuck_last_blocks.OBLIGATIONS,
    *stuck_boundaries.OBLIGATIONS,
    *stuck_each_other.OBLIGATIONS,
    *stuck_ends.OBLIGATIONS,
    *stuck_singles.OBLIGATIONS,
    *stuck_settings.OBLIGATIONS,
    *costs.OBLIGATIONS,
)


if __name__ == "__main__":
    main_of_group(GROUP, OBLIGATIONS)
