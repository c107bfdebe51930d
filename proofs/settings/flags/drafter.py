"""What follows from the drafter that an engine is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from proofs.settings.flags.facts import count, flag, number, table
from proofs.settings.stuck.kinds import Unknown
from spec.errors import InputError
from spec.rules.releases import ReleaseRules

_READ_AHEAD = ("eagle", "eagle3", "dflash", "dspark", "mtp")
"""Drafters that read the target's embeddings one token further on."""

_DO_NOT = ("ngram", "ngram_gpu", "suffix", "medusa", "mlp_speculator", "extract_hidden_states")
"""Drafters that read no embedding ahead."""


_ASYNCHRONOUS = ("eagle", "eagle3", "dflash", "mtp", "extract_hidden_states", "ngram_gpu")
"""Drafters with which releases up to 0.24 schedule asynchronously by default."""

_SHORT = {"spec_method": "method", "spec_tokens": "num_speculative_tokens"}
"""Arguments that stand for entries of ``speculative_config``."""


def drafter(given: Mapping[str, Any], rules: ReleaseRules) -> tuple[int, int, tuple[Unknown, ...]]:
    """Drafts, the scheduler's shift, and what is not settled about the drafter."""
    given_drafter = _entries(given)
    if not given_drafter and given.get("speculative_config") is None:
        return 0, 0, ()
    method, drafts = given_drafter.get("method"), given_drafter.get("num_speculative_tokens")
    if method is None or drafts is None:
        raise InputError(
            "speculative_config: give method and num_speculative_tokens; vLLM would read them from "
            "the drafter's own configuration"
        )
    drafts = number(drafts, "num_speculative_tokens")
    name = _plain_method(given_drafter)
    if name == "mtp":
        return drafts, _shift_of_mtp(given, drafts, rules), ()
    if name in _READ_AHEAD:
        shift = 1
    elif name in _DO_NOT:
        shift = 0
    elif name == "draft_model":
        return drafts, 0, (_SLOTS,)
    else:
        methods = ", ".join((*_READ_AHEAD, *_DO_NOT, "draft_model"))
        raise InputError(f"speculative_config: unknown method {method!r}; known: {methods}")
    return drafts, shift, (_SLOTS,) if given_drafter.get("parallel_drafting") else ()


def schedules_synchronously(given: Mapping[str, Any], release: str) -> bool:
    """Whether no pass is scheduled before the last one was updated.

    As ``VllmConfig`` derives it where nothing is said: on, but for what it does not support. Up to
    0.24 those are other drafters than EAGLE and its kin and batches of drafts that are not padded;
    from 0.33 on only of runner V1. Executors that cannot, and pooling models, have it off as well.
    What depends on anything but the settings counts as on: what is said of passes that overlap
    holds of those that do not.
    """
    explicit = given.get("async_scheduling")
    if explicit is not None:
        return not flag(given, "async_scheduling", default=True)
    entries = _entries(given)
    if not entries or Version(release) >= Version("0.25"):
        return False
    padded = not entries.get("disable_padded_drafter_batch")
    return not (padded and _plain_method(entries) in _ASYNCHRONOUS)


def _entries(given: Mapping[str, Any]) -> dict[str, Any]:
    """What is given of the drafter, by the names of ``speculative_config``."""
    entries = dict(table(given, "speculative_config") or {})
    for short, name in _SHORT.items():
        if given.get(short) is not None:
            entries.setdefault(name, given[short])
    return entries


def _plain_method(entries: Mapping[str, Any]) -> str:
    method = str(entries.get("method"))
    return "mtp" if method.endswith("mtp") else method


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
