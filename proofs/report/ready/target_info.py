"""What a report says about the code that was checked."""

from __future__ import annotations

import shlex
from functools import cache
from pathlib import Path
from typing import TypedDict

from impl.vllm.launch.source import PACKAGE, cache_folder, from_directory, unpacked
from proofs.search.functions.parts import WITHOUT
from spec.claims.assumptions import Assumption, assumption
from spec.functions.findings import Finding


class TargetInfo(TypedDict):
    """The target of a check.

    ``name`` is the target's name; ``release`` and ``source`` say where a vLLM came from, and are
    both ``None`` for the reference.
    """

    name: str
    release: str | None
    source: Path | None


def is_vllm(info: TargetInfo) -> bool:
    """Whether the target is a vLLM, so that a ready test can be written for it."""
    return info["release"] is not None or info["source"] is not None


def digest_of(info: TargetInfo) -> str | None:
    """Digest of the source that was checked; ``None`` where it is not in the cache any more."""
    return _digest(info["release"], info["source"])


@cache
def _digest(release: str | None, source: Path | None) -> str | None:
    # One process reports on one source, and a digest reads all of its files.
    if source is not None:
        return from_directory(source).digest
    present = None if release is None else unpacked(cache_folder(), release)
    return None if present is None else present.digest


def part_of(finding: Finding, info: TargetInfo) -> str:
    """The part that the finding was made on; ``V1`` in ``vllm 0.23.0 V1``."""
    return finding.target.removeprefix(info["name"]).strip()


def broken_assumption(part: str) -> Assumption | None:
    """The assumption that cases of a part break on purpose, if there is one."""
    without = {str(name): assumption_id for name, assumption_id in WITHOUT.items()}.get(part)
    return None if without is None else assumption(without)


_CODE: dict[str, str] = {
    "V1": "`GPUModelRunner._gather_mm_embeddings`",
    "V2": "`EncoderRunner.gather_mm_embeddings`",
    "V1 with V2": "`GPUModelRunner._gather_mm_embeddings` and `EncoderRunner.gather_mm_embeddings`",
    "free": "`Scheduler._free_encoder_inputs`",
    "free past the prompt": "`Scheduler._free_encoder_inputs`",
    "book": "`EncoderCacheManager`",
    "book of unlike contents": "`EncoderCacheManager`",
    "encoder_decoder_book": "`EncoderDecoderCacheManager`",
    "window": "`get_mm_features_in_window`",
    "row_range": "`PlaceholderRange.get_embeds_indices_in_range`",
}


def code_of(part: str) -> str:
    """Markdown that names the class and the method, or the function, of vLLM behind a part."""
    return _CODE[part]


def import_path(info: TargetInfo) -> str:
    """Shell text that yields the directory to put on ``PYTHONPATH``."""
    if info["source"] is not None:
        return f'"$(residency {PACKAGE} fetch --source {_quoted(info["source"])})"'
    return f'"$(residency {PACKAGE} fetch {info["release"]})"'


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
