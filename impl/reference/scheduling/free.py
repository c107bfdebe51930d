"""Letting references go as a request progresses."""

from __future__ import annotations

from typing import Protocol

from impl.reference.scheduling import guards
from impl.reference.scheduling.book import Book
from impl.reference.scheduling.request import Request


class FreeEncoderInputs(Protocol):
    """The type of :func:`free_encoder_inputs`."""

    def __call__(
        self, request: Request, manager: Book, *, is_encoder_decoder: bool = False, margin: int = 0
    ) -> list[int]:
        """Drop the references that the request's progress has made needless."""
        ...


def free_encoder_inputs(
    request: Request, manager: Book, *, is_encoder_decoder: bool = False, margin: int = 0
) -> list[int]:
    """Drop the references that the request's progress has made needless.

    Args:
        request: the request, with the progress of the step that was just updated.
        manager: the book.
        is_encoder_decoder: whether the model reads encoder outputs by cross-attention.
        margin: how many tokens past a feature's end progress must be. A drafter reads ahead of
            progress only, so 0 suffices while progress falls by nothing but placeholders.

    Returns:
        The features let go, in order.
    """
    gone = []
    for input_id in sorted(manager.get_cached_input_ids(request)):
        place = request.mm_features[input_id].mm_position
        if is_encoder_decoder:
            may_go = guards.encoder_decoder_reference_may_go(request.num_computed_tokens)
        else:
            may_go = guards.reference_may_go(
                place.end, margin, request.num_computed_tokens, request.num_output_placeholders
            )
        if may_go:
            manager.free_encoder_input(request, input_id)
            gone.append(input_id)
    return gone
