"""Switches of :mod:`impl.faults.switches` that the explorer cannot see, and why."""

from __future__ import annotations

_ROWS = "the model has hashes on the worker, not the rows of their tensors"
_ENCODER_DECODER = "the model does not cover encoder-decoder models, whose book keeps no entries"
_NOT_JUDGED = "the model does not judge pass-uses-budget yet: its scopes have two requests"
_ENDS = "the model does not judge yet where a chunk of a prefill ends"
_NOWHERE = "nothing shows in a running loop"

UNSEEN: dict[str, str] = {
    "rows-by-position": _ROWS,
    "mask-fills-span": _ROWS,
    "v2-splits-rows": _ROWS,
    "window-search-late": _ROWS,
    "v2-reset-keeps-tensors": "the model has hashes on the worker, not when they were encoded",
    "own-size-free": "the model takes a hash to stand for one content (hash-is-content)",
    "encoder-decoder-credit": _ENCODER_DECODER,
    "encoder-decoder-notices-late": _ENCODER_DECODER,
    "victim-budget-kept": _NOT_JUDGED,
    "victim-budget-charged-twice": _NOT_JUDGED,
    "skips-behind-victim": _NOT_JUDGED,
    "admits-one-a-pass": _NOT_JUDGED,
    "threshold-exceeded-by-one": _ENDS,
    "resumed-not-reserved": _ENDS,
    "not-reserved-before-others": _ENDS,
    "negative-mask-index": _NOWHERE,
    "free-ignores-placeholders": _NOWHERE,
    "evicts-newest-first": _NOWHERE,
}
