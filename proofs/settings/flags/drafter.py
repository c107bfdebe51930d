"""What follows from the drafter that an engine is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proofs.settings.flags.facts import count, number, table
from proofs.settings.stuck.kinds import Unknown
from spec.errors import InputError
from spec.rules.releases import ReleaseRules

_READ_AHEAD = ("eagle", "eagle3", "dflash", "dspark", "mtp")
"""Drafters that read the target's embeddings one token further on."""

_DO_NOT = ("ngram", "ngram_gpu", "suffix", "medusa", "mlp_speculator", "extract_hidden_states")
"""Drafters that read no embedding ahead."""


_SHORT = {"spec_method": "method", "spec_tokens": "num_speculative_tokens"}
"""Arguments that stand for entries of ``speculative_config``."""


def drafter(given: Mapping[str, Any], rules: ReleaseRules) -> tuple[int, int, tuple[Unknown, ...]]:
    """Drafts, the scheduler's shift, and what is not settled about the drafter."""
    given_drafter = dict(table(given, "speculative_config") or {})
    for short, name in _SHORT.items():
        if given.get(short) is not None:
            given_drafter.setdefault(name, given[short])
    if not given_drafter and given.get("speculative_config") is None:
        return 0, 0, ()
    method, drafts = given_drafter.get("method"), given_drafter.get("num_speculative_tokens")
    if method is None or drafts is None:
        raise InputError(
            "speculative_config: give method and num_speculative_tokens; vLLM would read them from "
            "the drafter's own configuration"
        )
    drafts = number(drafts, "num_speculative_tokens")
    name = "mtp" if str(method).endswith("mtp") else str(method)
    if name == "mtp":
        return drafts, _shift_of_mtp(given, drafts, rules), ()
    if name in _READ_AHEAD:
        shift = 1
    elif name in _DO_NOT:
        shift = 0
    elif name == "draft_model":
        return drafts, 0, (_SLOTS,)
    else:
        known = ", ".join((*_READ_AHEAD, *_DO_NOT, "draft_model"))
        raise InputError(f"speculative_config: unknown method {method!r}; known: {known}")
    return drafts, shift, (_SLOTS,) if given_drafter.get("parallel_drafting") else ()


_SLOTS = Unknown(
    "drafter-without-slots",
    "this drafter takes slots of the token budget for each request, which the theorems do not "
    "count",
)


def _shift_of_mtp(given: Mapping[str, Any], drafts: int, rules: ReleaseRules) -> int:
    if drafts == 1 or rules.largest_shift == 1:
        return 1
    modules = count(given, "modules")
    if modules is None:
        raise InputError(
            "missing --modules: how many modules the MTP drafter has (num_nextn_predict_layers of "
            "its configuration); with several the scheduler looks as far ahead as there are drafts"
        )
    return drafts if min(modules, drafts) > 1 else 1
