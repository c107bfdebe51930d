"""Cases and parts in words, for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from proofs.describe.scenarios import describe_scenario
from proofs.describe.words import counted
from spec.functions.cases import (
    AnyCase,
    BookCase,
    BookOperation,
    FreeCase,
    GatherCase,
    RowRangeCase,
    SchedulingCase,
    WindowCase,
)
from spec.record.feature import Feature
from spec.record.scenario import Scenario


def describe_case(case: AnyCase) -> str:
    """Say everything about the case on one line."""
    match case:
        case Scenario():
            return describe_scenario(case)
        case GatherCase():
            requests = "; ".join(
                f"{request.num_computed_tokens} computed + {request.num_scheduled_tokens} "
                f"scheduled of {request.prefill_len} with {_features(request.features)}"
                for request in case.requests
            )
            resident = ", ".join(output.identifier for output in case.resident) or "nothing"
            return f"{requests}; resident: {resident}; look-ahead {case.draft_lookahead}"
        case FreeCase():
            moments = ", ".join(
                f"{moment.num_computed_tokens} computed "
                f"({counted(moment.num_output_placeholders, 'placeholder')}, "
                f"{counted(moment.num_drafts_in_flight, 'draft')})"
                for moment in case.progress
            )
            kind = "encoder-decoder, " if case.is_encoder_decoder else ""
            return (
                f"{kind}{_features(case.features)}; cache {case.cache_size}, scheduler's shift "
                f"{case.scheduler_shift}; free at {moments}"
            )
        case BookCase():
            kind = "encoder-decoder, " if case.is_encoder_decoder else ""
            operations = ", ".join(_operation(case, operation) for operation in case.operations)
            return f"{kind}cache {case.cache_size}; {operations}"
        case WindowCase():
            return f"[{case.start},{case.end}) over {_features(case.features)}"
        case RowRangeCase():
            return f"[{case.start},{case.end}) of mask {_mask(case.is_embed)}"
        case SchedulingCase():
            items = ", items whole" if case.whole_items else ""
            return (
                f"{case.num_computed_tokens} computed of {case.prefill_len} with "
                f"{_features(case.features)}; token budget {case.token_budget}, encoder budget "
                f"{case.encoder_budget}, cache {case.cache_size}, scheduler's shift "
                f"{case.scheduler_shift}{items}; book: {_entries(case)}; "
                f"{counted(case.num_passes, 'pass', 'passes')}"
            )


def describe_limits(operation: BookOperation) -> str:
    """What a take is held to beside the cache's size, to follow its rows; empty where nothing."""
    budget, chosen = operation.encoder_budget, operation.num_rows_chosen
    words = "" if budget is None else f", encoder budget {budget}"
    return words + (f", {chosen} chosen before" if chosen else "")


def _features(features: Sequence[Feature]) -> str:
    return " ".join(feature.describe() for feature in features) or "no feature"


def _entries(case: SchedulingCase) -> str:
    return (
        ", ".join(
            f"{entry.identifier} ({counted(entry.num_rows, 'row')}) held by {entry.holder}"
            for entry in case.entries
        )
        or "empty"
    )


def _mask(is_embed: Iterable[bool]) -> str:
    return "".join("T" if takes_row else "F" for takes_row in is_embed)


def _operation(case: BookCase, operation: BookOperation) -> str:
    match operation.action:
        case "take" | "drop":
            feature = case.requests[operation.request][operation.feature]
            return (
                f"request {operation.request} {operation.action}s {feature.describe()} "
                f"({counted(feature.num_rows, 'row')}{describe_limits(operation)})"
            )
        case "finish":
            return f"request {operation.request} finishes"
        case "end_pass":
            return "the pass ends"
        case "reset":
            return "reset"
