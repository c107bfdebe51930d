"""Counts, parts, targets and places in words."""

from __future__ import annotations

from spec.record.run_findings import LoopFinding

_PARTS_IN_WORDS = {"encoder_decoder_book": "encoder-decoder book", "row_range": "row range"}
"""Parts whose ids are not words."""


def describe_part(part: str) -> str:
    """The part's name for people; files keep the id."""
    return _PARTS_IN_WORDS.get(part, part)


def describe_target(target: str) -> str:
    """The name of what a finding was made on, with its part, for people."""
    before, space, part = target.rpartition(" ")
    return f"{before}{space}{describe_part(part)}"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """``1 row``, ``2 rows``."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"


def describe_place(finding: LoopFinding) -> str:
    """Pass, request and feature of a finding on a run, as far as it names them."""
    place = f"pass {finding.pass_index}"
    if finding.request is not None:
        place += f", request {finding.request}"
    if finding.feature is not None:
        place += f", feature {finding.feature}"
    return place
