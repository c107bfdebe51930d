"""What the model reads: its own token embeddings with the gathered rows in place."""

from __future__ import annotations

from collections.abc import Sequence

from impl.late import torch


def merge_embeddings(
    token_embeddings: torch.Tensor, mm_embeds: Sequence[torch.Tensor], is_mm_embed: torch.Tensor
) -> torch.Tensor:
    """Put the gathered rows where the mask is true, in order.

    Args:
        token_embeddings: shape ``(tokens, hidden)``; left as it is.
        mm_embeds: tensors of shape ``(rows, hidden)``.
        is_mm_embed: bool, shape ``(tokens,)``, on any device.

    Returns:
        Shape ``(tokens, hidden)``, on the device of ``token_embeddings``.

    Raises:
        ValueError: the rows are not as many as the mask's true positions.
    """
    num_rows = sum(len(rows) for rows in mm_embeds)
    num_places = int(is_mm_embed.sum())
    if num_rows != num_places:
        raise ValueError(f"{num_rows} rows were gathered for {num_places} positions")
    merged = token_embeddings.clone()
    if num_rows:
        places = is_mm_embed.to(merged.device, non_blocking=True)
        merged[places] = torch.cat(list(mm_embeds)).to(merged.dtype)
    return merged
