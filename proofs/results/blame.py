"""The function of a vLLM that a violated claim is about, and the line where it stands.

The source is parsed, never imported. For a run the function is the one that decides what the claim
is about; that is where a reader has to begin, and not always where the mistake is.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from impl.vllm.launch.source import parsed
from spec.errors import InputError

_SCHEDULER = "v1/core/sched/scheduler.py"
_BOOK = "v1/core/encoder_cache_manager.py"


@dataclass(frozen=True)
class SourcePlace:
    """Where a function stands.

    Attributes:
        root: the folder that holds the package.
        file: the file, relative to it, with slashes.
        line: first line of the definition, from 1.
        name: class and method, or the function.
    """

    root: Path
    file: str
    line: int
    name: str


@dataclass(frozen=True)
class _Code:
    """A definition; an empty method stands for the class, an empty class for the module's own."""

    file: str
    owner: str
    function: str = ""


_V1 = _Code("v1/worker/gpu_model_runner.py", "GPUModelRunner", "_gather_mm_embeddings")
_V2 = _Code("v1/worker/gpu/mm/encoder_runner.py", "EncoderRunner", "gather_mm_embeddings")
_SCHEDULE = _Code(_SCHEDULER, "Scheduler", "schedule")
_TRY = _Code(_SCHEDULER, "Scheduler", "_try_schedule_encoder_inputs")
_FREE = _Code(_SCHEDULER, "Scheduler", "_free_encoder_inputs")
_UPDATE = _Code(_SCHEDULER, "Scheduler", "update_from_output")
_ENTRIES = _Code(_BOOK, "EncoderCacheManager")
_EVICTED = _Code(_BOOK, "EncoderCacheManager", "get_freed_mm_hashes")
_COUNTER = _Code(_BOOK, "EncoderDecoderCacheManager")

_OF_PART: Mapping[str, _Code] = {
    "V1": _V1,
    "V2": _V2,
    "V1 with V2": _V2,
    "free": _FREE,
    "free past the prompt": _FREE,
    "book": _ENTRIES,
    "book of unlike contents": _ENTRIES,
    "encoder_decoder_book": _COUNTER,
    "window": _Code("multimodal/utils.py", "", "get_mm_features_in_window"),
    "row_range": _Code("multimodal/inputs.py", "PlaceholderRange", "get_embeds_indices_in_range"),
}

_OF_CLAIM: Mapping[str, _Code | None] = {
    "boundary-miss-tolerated": None,
    "boundary-used-when-resident": None,
    "interior-miss-raises": None,
    "rows-exact": None,
    "mask-exact": None,
    "runners-agree": None,
    "fresh-tensor": None,
    "target-resident": _TRY,
    "drafter-resident-or-boundary": _TRY,
    "need-agrees": _TRY,
    "item-whole": _TRY,
    "no-stall": _TRY,
    "work-conserving": _SCHEDULE,
    "pass-uses-budget": _SCHEDULE,
    "threshold-kept": _SCHEDULE,
    "reservation-kept": _SCHEDULE,
    "no-thrash": _SCHEDULE,
    "payload-available": _SCHEDULE,
    "no-idle-references": _SCHEDULE,
    "no-error": _SCHEDULE,
    "counts-agree": _UPDATE,
    "dropped-in-update": _FREE,
    "freed-not-needed": _FREE,
    "held-until-last-use": _FREE,
    "released": _FREE,
    "evicted-not-live": _EVICTED,
    "views-agree": _EVICTED,
    "worker-bounded": _ENTRIES,
    "slots-conserved": _ENTRIES,
}
"""What decides a claim on the loop; ``None`` where the runner's gather does."""


def place_of_part(package: Path, part: str) -> SourcePlace | None:
    """The function behind a part of a vLLM.

    Args:
        package: its folder ``vllm``.
        part: a part, such as ``V1`` or ``free``; parts about scheduling begin with that word.
    """
    if part.startswith("scheduling"):
        return _place(package, _TRY)
    code = _OF_PART.get(part)
    return None if code is None else _place(package, code)


def place_of_loop_claim(
    package: Path, claim: str, runners: Sequence[str], *, is_encoder_decoder: bool = False
) -> SourcePlace | None:
    """The function that decides what a claim on the loop is about.

    Args:
        package: the folder ``vllm``.
        claim: id of the claim.
        runners: those that show the violation.
        is_encoder_decoder: whether the run has the book of encoder-decoder models.
    """
    code = _OF_CLAIM[claim]
    if code is None:
        code = _V1 if tuple(runners) == ("V1",) else _V2
    if is_encoder_decoder and code in (_ENTRIES, _EVICTED):
        code = _COUNTER
    return _place(package, code)


def _place(package: Path, code: _Code) -> SourcePlace | None:
    """Where a definition stands; where there is no such method, its class, or nothing."""
    root = package.resolve().parent
    tree = _tree(root / package.name / code.file)
    if tree is None:
        return None
    wanted = ".".join(name for name in (code.owner, code.function) if name)
    lines = _definitions(tree)
    for name in (wanted, code.owner):
        if name in lines:
            return SourcePlace(root, f"{package.name}/{code.file}", lines[name], name)
    return None


@cache
def _tree(path: Path) -> ast.Module | None:
    # One process blames one source, whose files do not change meanwhile.
    try:
        return parsed(path)
    except InputError:
        return None


def _definitions(tree: ast.Module) -> dict[str, int]:
    """Lines of functions, classes and methods, by their names; the last definition stands."""
    lines: dict[str, int] = {}
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name, lineno=line):
                lines[name] = line
            case ast.ClassDef(name=name, lineno=line, body=body):
                lines[name] = line
                for inner in body:
                    if isinstance(inner, ast.FunctionDef):
                        lines[f"{name}.{inner.name}"] = inner.lineno
    return lines
