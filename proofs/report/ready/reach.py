"""Whether a release in its default settings can get to what a finding shows.

A function that misbehaves when it is called by hand matters only if the engine calls it so. What is
known about that is written down here, by claim and mechanism; for the rest the answer is that
nobody knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spec.functions.cases import BookCase, FreeCase
from spec.functions.findings import Finding

Answer = Literal["yes", "no", "not established"]


@dataclass(frozen=True)
class Reach:
    """Whether default settings reach a fault, and what it takes."""

    answer: Answer
    sentence: str


_UNKNOWN = Reach(
    "not established",
    "the function was called directly; no schedule of this release was looked for that makes the "
    "same call",
)

_DRAFTER = Reach(
    "no",
    "speculative decoding is off by default; with a drafter that reads multimodal embeddings "
    "(EAGLE, EAGLE3, MTP) on a multimodal model, the defaults for everything else reach it: "
    "prefills are chunked, and it takes a chunk that ends where an item begins",
)

_REPEATED_ITEM = Reach(
    "yes",
    "a prompt that repeats one image is enough, if a chunk of its prefill ends between the two "
    "places; the entry can then be evicted and the item is encoded again",
)

_FULL_CACHE = Reach(
    "yes",
    "the encoder cache has to be full, and one pass has to evict an entry for one request and "
    "allocate it again for another; the worker then drops an output that the book believes to be "
    "there (in the order of either runner it is encoded again, so no miss is known to follow)",
)

_ENCODER_DECODER = Reach(
    "yes",
    "with an encoder-decoder model such as Whisper every decode step credits the slots again, and "
    "so does the end of a request, even of one that is aborted before it ran",
)

_REUSED_UUID = Reach(
    "no",
    "by default an identifier is a hash of the content; a client that supplies identifiers of its "
    "own and reuses one for other content reaches it",
)

_PLACEHOLDERS = Reach(
    "no",
    "it needs asynchronous scheduling with drafts in flight, and a feature that ends past where "
    "drafting began; drafts begin after the prompt and features lie in the prompt",
)


def reach_of(finding: Finding) -> Reach:
    """What is known about the finding's way to happen in default settings."""
    case = finding.case
    match finding.claim:
        case "boundary-miss-tolerated" | "boundary-used-when-resident":
            return _DRAFTER
        case "held-until-last-use":
            return _REPEATED_ITEM
        case "evicted-not-live":
            return _FULL_CACHE
        case "freed-not-needed":
            return _PLACEHOLDERS
        case "slots-conserved" if isinstance(case, (FreeCase, BookCase)):
            if case.is_encoder_decoder:
                return _ENCODER_DECODER
            if isinstance(case, BookCase) and not case.content_is_hashed:
                return _REUSED_UUID
    return _UNKNOWN
