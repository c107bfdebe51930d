"""Which claims ``prove --source-of`` asks on which part of a release, without a release."""

from __future__ import annotations

from proofs.source.check import MAX_FEATURES
from proofs.source.functions import books, gather_claims
from proofs.source.passes import runs, scheduling_claims
from proofs.source.passes.run_scenario import FEW_PASSES, MOST_PASSES, run_shapes
from proofs.source.passes.scheduling_scenario import lone_shapes, shapes


def source_parts() -> dict[str, tuple[str, ...]]:
    """By part, the claims asked there; rules apart."""
    parts: dict[str, tuple[str, ...]] = {
        "V1": gather_claims.CLAIMS,
        "V2": gather_claims.CLAIMS,
        "free": ("freed-not-needed",),
        "free past the prompt": ("freed-not-needed",),
        "window": ("window-exact",),
        "row_range": ("row-range-exact",),
        "book": books.CLAIMS,
        "book of unlike contents": books.UNLIKE_CONTENTS_CLAIMS,
        "encoder_decoder_book": books.ENCODER_DECODER_CLAIMS,
    }
    asked: dict[str, dict[str, None]] = {}
    for shape in (*shapes(MAX_FEATURES), *lone_shapes(MAX_FEATURES)):
        claims = scheduling_claims.claims_of(shape)
        asked.setdefault(shape.part, {}).update(dict.fromkeys(claims))
        if "item-whole" in claims:
            asked.setdefault(f"{shape.part} ahead", {})["item-whole"] = None
    for run in (s for n in range(FEW_PASSES, MOST_PASSES + 1) for s in run_shapes(2, n, (0, 1, 2))):
        asked.setdefault(run.part, {}).update(dict.fromkeys(runs.claims_of(run)))
    return parts | {part: tuple(claims) for part, claims in asked.items()}
