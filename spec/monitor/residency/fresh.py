"""Whether a tensor is the reader's own (the claim ``fresh-tensor``)."""

from __future__ import annotations

from spec.claims import predicates as claims
from spec.history.history import History
from spec.history.log import FindingLog
from spec.monitor.residency.gathered import Reader, ReadFeature


def check_fresh(
    history: History, log: FindingLog, reader: Reader, resident: list[ReadFeature]
) -> bool:
    """Whether every tensor has the rows that its reader expects; notes those that do not."""
    alike = True
    for read in resident:
        log.premises["fresh-tensor"] += 1
        wrong = staleness(history, read, history.contents[read.feature.identifier])
        if wrong is None:
            continue
        mechanism, observed = wrong
        alike = alike and mechanism != "tensor with another number of rows"
        if read.boundary and not history.content_is_hashed:
            # The pass has not asked the book for it, or not yet: only drafts can suffer.
            continue
        log.add(
            "fresh-tensor",
            f"{reader}: {mechanism}",
            observed=f"{reader}: {read.describe()} reads a tensor {observed}",
            expected=f"{read.feature.num_rows} rows encoded from content "
            f"{read.feature.content!r} since the last reset",
            request=read.request,
            feature=read.feature.index,
        )
    return alike


def staleness(history: History, read: ReadFeature, number: int) -> tuple[str, str] | None:
    """Why a tensor is not the reader's own: the mechanism, and what was seen."""
    encoded = history.encodings.get(number)
    if encoded is None:
        return "tensor that no encoding made", f"numbered {number}, which nobody encoded"
    encoding, resets = encoded
    has_all_rows = encoding.num_rows == read.feature.num_rows
    content = history.content_of(encoding)
    is_own_content = content == read.feature.content
    if claims.fresh_tensor(True, is_own_content, resets == history.resets, has_all_rows):
        return None
    if not has_all_rows:
        return "tensor with another number of rows", f"of {encoding.num_rows} rows"
    if not is_own_content:
        return "tensor of another content", f"of content {content!r}"
    return "tensor from before a reset", "encoded before the last reset"
