"""What a report calls the part of a target that was checked, and the code of vLLM behind it."""

from __future__ import annotations

from proofs.search.functions.parts import WITHOUT
from spec.claims.assumptions import Assumption, assumption
from spec.functions.findings import Finding


def part_of(finding: Finding, target: str) -> str:
    """The part of a target that the finding was made on; ``V1`` in ``vllm 0.23.0 V1``."""
    return finding.target.removeprefix(target).strip()


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
