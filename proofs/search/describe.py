"""A case on one line, for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spec.cases import BookCase, BookOperation, Case, FreeCase, GatherCase, RowRangeCase, WindowCase
from spec.feature import Feature


def describe_case(case: Case) -> str:
    """Say everything about the case on one line."""
    match case:
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
                f"{moment.num_computed_tokens} computed ({moment.num_output_placeholders} "
                f"placeholders, {moment.num_drafts_in_flight} drafts)"
                for moment in case.progress
            )
            kind = "encoder-decoder, " if case.is_encoder_decoder else ""
            return (
                f"{kind}{_features(case.features)}; cache {case.cache_size}, shift "
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


def describe_limits(operation: BookOperation) -> str:
    """What a take is held to beside the cache's size, to follow its rows; empty where nothing."""
    budget, chosen = operation.encoder_budget, operation.num_rows_chosen
    words = "" if budget is None else f", encoder budget {budget}"
    return words + (f", {chosen} chosen before" if chosen else "")


def _features(features: Sequence[Feature]) -> str:
    return " ".join(feature.describe() for feature in features) or "no feature"


def _mask(is_embed: Iterable[bool]) -> str:
    return "".join("T" if takes_row else "F" for takes_row in is_embed)


def _operation(case: BookCase, operation: BookOperation) -> str:
    match operation.action:
        case "take" | "drop":
            feature = case.requests[operation.request][operation.feature]
            return (
                f"request {operation.request} {operation.action}s {feature.describe()} "
                f"({feature.num_rows} rows{describe_limits(operation)})"
            )
        case "finish":
            return f"request {operation.request} finishes"
        case "end_pass":
            return "the pass ends"
        case "reset":
            return "reset"
