"""From vLLM's own arguments to settings: what follows from what, and what is missing.

Names and derivations are those of vLLM 0.33.0. Encoder budget and cache size are no arguments
there: both are the token budget, or the largest item where that is more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from packaging.version import Version

from proofs.settings.flags.command_line import close_to
from proofs.settings.flags.drafter import drafter, schedules_synchronously
from proofs.settings.flags.facts import count, flag, required, table
from proofs.settings.flags.known import KNOWN, MAMBA_CACHE_MODES, NOT_MODELLED, POLICIES
from proofs.settings.judge import Setup
from proofs.settings.stuck.kinds import Unknown
from proofs.settings.stuck.settings import Settings
from spec.errors import InputError, message_of
from spec.record.json_document import read_text
from spec.rules.releases import NEWEST, ReadRules, is_later, rules_of

_PARTIAL_PREFILL_SHARE = 0.04
"""Share of the longest prompt that becomes the threshold under concurrent partial prefills."""


class _PlainLoader(yaml.SafeLoader):
    """Reads YAML without aliases, a few of which can stand for gigabytes, and equal keys."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.YAMLError(f"an alias (line {mark.line + 1}); write out what it stands for")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.YAMLError(f"the key {key.value!r} stands twice in one table")
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_config(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Arguments from a YAML or JSON file, by their names with underscores, and what is none here.

    Raises:
        InputError: the file cannot be read, holds no table, or misspells an argument.
    """
    try:
        data = yaml.load(read_text(path), _PlainLoader)  # noqa: S506 -- a safe loader, made stricter
    except RecursionError:
        raise InputError(f"{path}: nested too deep to be read") from None
    except (yaml.YAMLError, ValueError) as error:  # A number or a date that Python refuses.
        message = " ".join(message_of(error).split())
        raise InputError(f"{path}: neither YAML nor JSON: {message}") from None
    if not isinstance(data, dict):
        raise InputError(f"{path}: give a table of arguments, one a line: `max-num-seqs: 256`")
    given, ignored = {}, []
    for key, value in data.items():
        name = str(key).replace("-", "_")
        if name in given:
            raise InputError(f"{path}: {name} is given twice, once with underscores")
        if name in KNOWN:
            given[name] = value
            continue
        close = close_to(name.replace("_", "-"), [flag.replace("_", "-") for flag in KNOWN])
        if close is not None:
            raise InputError(f"{path}: unknown arguments {name}; did you mean {close}?")
        ignored.append(name.replace("_", "-"))
    return given, ignored


def setup_of(
    given: Mapping[str, Any], overrides: Mapping[str, Any], source: ReadRules | None = None
) -> Setup:
    """Settings and rules from arguments.

    Args:
        given: arguments by name (:mod:`proofs.settings.flags.known`); missing ones are not given.
        overrides: fields of :class:`ReleaseRules` to put in place of the release's.
        source: rules that were read in a source, instead of a release's.

    Raises:
        InputError: a fact is missing, contradictory or no number.
    """
    release = str(given.get("release") or NEWEST)
    is_unknown = source is None and is_later(release)
    release_rules = rules_of(NEWEST if is_unknown else release) if source is None else source.rules
    rules = replace(release_rules, **overrides)
    budget = required(
        given,
        "max_num_batched_tokens",
        "--max-num-batched-tokens: the token budget of a pass; vLLM's default depends on the "
        "machine, and its log tells it at start-up",
    )
    longest = required(
        given,
        "largest_item",
        "--largest-item: tokens of the model's longest image, audio or video; 0 for text only",
    )
    rows = count(given, "largest_rows")
    rows = longest if rows is None else rows
    cache, encoder = count(given, "encoder_cache_size"), count(given, "encoder_budget")
    length = count(given, "max_model_len")
    drafts, shift, questions = drafter(given, rules)
    derived = max(budget, rows)
    settings = Settings(
        token_budget=budget,
        encoder_budget=derived if encoder is None else encoder,
        cache_size=derived if cache is None else cache,
        largest_item=longest,
        largest_rows=rows,
        whole_items=flag(given, "disable_chunked_mm_input", default=False),
        num_drafts=drafts,
        shift=shift,
        threshold=_threshold(given, release, length),
        block_alignment=_alignment(given),
        num_requests=count(given, "requests"),
        max_num_seqs=_most_running(given),
        items_per_prompt=_items(given),
        # A prompt leaves room for a token at least.
        longest_prompt=None if length is None else length - 1,
        prefix_hits=flag(given, "enable_prefix_caching", default=True),
        by_priority=_word(given, "scheduling_policy", POLICIES) == "priority",
        async_depth=0 if schedules_synchronously(given, release) else 1,
        sizes_follow_budget=cache is None and encoder is None,
    )
    name = None if overrides or source is not None else release
    questions = (*questions, *_open(given, settings))
    unread = tuple(_unread(settings, source))
    if is_unknown:
        sentence = (
            f"the rules of vLLM {release} are not known, and {NEWEST} is judged in its place; give "
            "its source (--source DIR), or the rules themselves (--margin, --cut-shift and so on)"
        )
        unread = () if overrides else (sentence,)
    return Setup(
        settings,
        rules,
        name,
        questions,
        _item_limits(given),
        _not_settable(settings),
        unread,
        is_read=source is not None,
    )


def _unread(settings: Settings, source: ReadRules | None) -> Iterator[str]:
    """Rules that these settings depend on, and that the source does not show."""
    if source is None:
        return
    yield from source.missing
    if settings.threshold:
        yield "whom the threshold on long prefills spares is not read in a source"
    if settings.block_alignment:
        yield "how chunks are aligned to blocks is not read in a source"


def _not_settable(settings: Settings) -> tuple[str, ...]:
    """Sizes that no settings of vLLM come to: it derives both, and has arguments for neither."""
    derived = max(settings.token_budget, settings.largest_rows)
    sizes = {"encoder budget": settings.encoder_budget, "encoder cache": settings.cache_size}
    return tuple(
        f"not settable in vLLM: an {name} of {rows} rows; it is {derived}, the token budget or the "
        "largest item, whichever is more. The verdict is about another cache manager"
        for name, rows in sizes.items()
        if rows != derived
    )


def _threshold(given: Mapping[str, Any], release: str, length: int | None) -> int:
    threshold = count(given, "long_prefill_token_threshold") or 0
    partial = count(given, "max_num_partial_prefills") or 1
    if threshold or partial == 1:
        return threshold
    if Version(release) >= Version("0.28"):
        raise InputError(f"max_num_partial_prefills is no argument of vLLM {release}")
    if length is None:
        raise InputError(
            "missing --max-model-len: with max_num_partial_prefills the threshold on long prefills "
            "follows from it"
        )
    return int(length * _PARTIAL_PREFILL_SHARE)


def _most_running(given: Mapping[str, Any]) -> int | None:
    names = ("max_num_seqs", "max_num_active_seqs")
    bounds = [bound for name in names if (bound := count(given, name)) is not None]
    return min(bounds, default=None)


def _alignment(given: Mapping[str, Any]) -> int:
    alignment = count(given, "block_alignment")
    if alignment is not None:
        return alignment
    if _word(given, "mamba_cache_mode", MAMBA_CACHE_MODES) != "align":
        return 0
    size = required(
        given,
        "block_size",
        "--block-size: with mamba_cache_mode align, chunks end at multiples of it",
    )
    if size < 1:
        raise InputError(f"block_size is {size}; it must be at least 1")
    return size


def _word(given: Mapping[str, Any], name: str, words: Sequence[str]) -> str | None:
    value = given.get(name)
    if value is not None and value not in words:
        raise InputError(f"{name}: {value!r} is none of {', '.join(words)}")
    return value


def _items(given: Mapping[str, Any]) -> int | None:
    """Most items of a prompt, of all kinds together; ``None`` where nothing bounds them."""
    value = given.get("limit_mm_per_prompt")
    if value is None:
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.isdigit():
        return int(value)
    limits = table(given, "limit_mm_per_prompt") or {}
    total = 0
    for kind, limit in limits.items():
        count = limit.get("count") if isinstance(limit, dict) else limit
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise InputError(f"limit_mm_per_prompt: give a count for {kind}, 0 or more")
        total += count
    return total


def _item_limits(given: Mapping[str, Any]) -> tuple[str, str] | None:
    """The limits on a prompt's items as JSON, kind by kind, and such that let a single item in."""
    value = given.get("limit_mm_per_prompt")
    if value is None or isinstance(value, int) or (isinstance(value, str) and value.isdigit()):
        return None
    limits = table(given, "limit_mm_per_prompt") or {}
    left = 1
    single: dict[str, Any] = {}
    for kind, limit in limits.items():
        most = limit["count"] if isinstance(limit, dict) else limit
        count_ = min(most, left)
        left -= count_
        single[kind] = {**limit, "count": count_} if isinstance(limit, dict) else count_
    return json.dumps(limits), json.dumps(single)


def _open(given: Mapping[str, Any], settings: Settings) -> tuple[Unknown, ...]:
    """What the theorems say nothing of."""
    found = []
    if flag(given, "encoder_decoder", default=False):
        found.append(
            Unknown("decoder-only", "encoder-decoder models keep another book of encoder outputs")
        )
    if not flag(given, "enable_chunked_prefill", default=True):
        found.append(
            Unknown("chunked-prefill", "without chunked prefill a prompt waits for a whole pass")
        )
    adaptive = flag(given, "long_prefill_token_threshold_adaptive", default=False)
    if settings.threshold and adaptive:
        found.append(
            Unknown(
                "threshold-fixed",
                "an adaptive threshold on long prefills depends on how many requests there are",
            )
        )
    found += [
        Unknown("no-outside-store", f"{name} lets a store outside of the engine hold up requests")
        for name in ("kv_transfer_config", "ec_transfer_config")
        if given.get(name)
    ]
    found += [
        Unknown("passes-as-modelled", f"{name} means {what}, which no theorem is about")
        for name, what in NOT_MODELLED.items()
        if given.get(name) and not (name == "pipeline_parallel_size" and count(given, name) == 1)
    ]
    return tuple(found)
