"""What can be checked on a target at function level, with which cases, for which claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hypothesis.strategies import SearchStrategy

from impl.target import FunctionTarget, Part
from impl.tensors import TensorSettings
from proofs.search.functions import strategies
from spec.functions.cases import BookCase, Case, FreeCase, GatherCase, RowRangeCase, WindowCase
from spec.functions.findings import Finding
from spec.monitor.functions.observed import check, check_runners_agree

CheckedPart: TypeAlias = (
    Part | Literal["V1 with V2", "free past the prompt", "book of unlike contents"]
)
"""A part of a target, both runners together, or a part with cases that break an assumption."""

_GATHER_CLAIMS = (
    "boundary-miss-tolerated",
    "interior-miss-raises",
    "boundary-used-when-resident",
    "rows-exact",
    "mask-exact",
    "no-error",
)

CLAIMS_OF_PART: dict[CheckedPart, tuple[str, ...]] = {
    "V1": _GATHER_CLAIMS,
    "V2": _GATHER_CLAIMS,
    "V1 with V2": ("runners-agree",),
    "free": ("freed-not-needed", "held-until-last-use", "slots-conserved", "no-error"),
    "free past the prompt": ("freed-not-needed",),
    "book": (
        "slots-conserved",
        "held-until-last-use",
        "released",
        "evicted-not-live",
        "book-exact",
        "no-error",
    ),
    "book of unlike contents": ("slots-conserved", "no-error"),
    "encoder_decoder_book": ("slots-conserved", "book-exact", "no-error"),
    "window": ("window-exact",),
    "row_range": ("row-range-exact",),
}
"""Claims that a call of the part can contradict, in the order of reports."""

WITHOUT: dict[CheckedPart, str] = {
    "free past the prompt": "features-in-prompt",
    "book of unlike contents": "hash-is-content",
}
"""The assumption that a part's cases break."""

_NEEDS: dict[CheckedPart, tuple[Part, ...]] = {
    "V1": ("V1",),
    "V2": ("V2",),
    "V1 with V2": ("V1", "V2"),
    "free": ("free",),
    "free past the prompt": ("free",),
    "book": ("book",),
    "book of unlike contents": ("book",),
    "encoder_decoder_book": ("encoder_decoder_book",),
    "window": ("window",),
    "row_range": ("row_range",),
}


@dataclass(frozen=True)
class Family:
    """Cases of one strategy, and the parts that each of them is given to."""

    name: str
    cases: Callable[[], SearchStrategy[Case]]
    parts: tuple[CheckedPart, ...]


FAMILIES: tuple[Family, ...] = (
    Family("gather", strategies.gather_cases, ("V1", "V2", "V1 with V2")),
    Family("free", lambda: strategies.free_cases(features_in_prompt=True), ("free",)),
    Family(
        "free past the prompt",
        strategies.free_cases,
        ("free past the prompt",),
    ),
    Family("book", strategies.book_cases, ("book",)),
    Family(
        "book of unlike contents",
        lambda: strategies.book_cases(content_is_hashed=False),
        ("book of unlike contents",),
    ),
    Family(
        "encoder-decoder book",
        strategies.encoder_decoder_book_cases,
        ("encoder_decoder_book",),
    ),
    Family("window", strategies.window_cases, ("window",)),
    Family("row range", strategies.row_range_cases, ("row_range",)),
)


def why_missing(target: FunctionTarget, part: CheckedPart) -> str | None:
    """Why the target cannot be checked on the part, or ``None``."""
    reasons = (target.missing(needed) for needed in _NEEDS[part])
    return next((reason for reason in reasons if reason is not None), None)


def findings_on(
    target: FunctionTarget, part: CheckedPart, case: Case, tensors: TensorSettings
) -> tuple[Finding, ...]:
    """Give the case to the part and return what the monitor finds.

    Raises:
        InputError: the target cannot be given the case.
        TypeError: the part takes no case of this kind.
    """
    name = f"{target.name} {part}"
    match case, part:
        case GatherCase(), "V1" | "V2":
            return check(case, target.gather(case, part, tensors), name)
        case GatherCase(), "V1 with V2":
            first, second = (target.gather(case, runner, tensors) for runner in ("V1", "V2"))
            return check_runners_agree(case, first, second, name)
        case FreeCase(), "free" | "free past the prompt":
            return check(case, target.free(case), name)
        case BookCase(), "book" | "book of unlike contents" | "encoder_decoder_book":
            return check(case, target.book(case), name)
        case WindowCase(), "window":
            return check(case, target.window(case), name)
        case RowRangeCase(), "row_range":
            return check(case, target.row_range(case), name)
    raise TypeError(f"part {part} takes no {type(case).__name__}")
