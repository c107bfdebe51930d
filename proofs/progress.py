"""Progress: why correct rules always go on, and the exact conditions under which others stop."""

from __future__ import annotations

from proofs import (
    costs,
    progress_chunks,
    progress_order,
    stuck_alignment,
    stuck_boundaries,
    stuck_each_other,
    stuck_ends,
    stuck_last_blocks,
    stuck_neighbours,
    stuck_reservation,
    stuck_settings,
    stuck_singles,
)
from proofs.obligation import Obligation
from proofs.stuck_scene import GROUP

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
    from proofs.prove_command import main_of_group

    main_of_group(GROUP)
