"""A scenario's features as the implementation holds them."""

from __future__ import annotations

from collections.abc import Iterable

from impl.late import torch
from impl.reference.scheduling.request import MultiModalFeature, PlaceholderRange
from spec.record.feature import Feature


def features_of(
    placeholder_range: type[PlaceholderRange], features: Iterable[Feature]
) -> list[MultiModalFeature]:
    """Features with their places; masks become bool tensors on the CPU."""
    return [
        MultiModalFeature(
            feature.identifier,
            placeholder_range(
                feature.offset,
                feature.length,
                None
                if feature.is_embed is None
                else torch.tensor(feature.is_embed, dtype=torch.bool),
            ),
        )
        for feature in features
    ]
