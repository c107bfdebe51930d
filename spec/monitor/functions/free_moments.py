"""Check the claims about *free* on an observation."""

from __future__ import annotations

from spec.claims import predicates as claims
from spec.functions.cases import FreeCase, Progress
from spec.functions.findings import Finding, finding
from spec.functions.observations import FreeMoment, FreeObservation
from spec.monitor.functions.slots import (
    require_complete,
    slots_finding,
    wrong_entry_slots,
    wrong_slots,
)
from spec.record.feature import rows_by_identifier


def check_free(case: FreeCase, observation: FreeObservation, target: str) -> tuple[Finding, ...]:
    """Compare what *free* let go, moment by moment, with what may still be read.

    Stops at the first moment that contradicts a claim: what follows grows out of it.

    Raises:
        ValueError: moments are missing although there was no error.
    """
    require_complete(observation.moments, case.progress, observation.error)
    rows = rows_by_identifier(case.features)
    dropped: set[int] = set()
    for index, (progress, moment) in enumerate(
        zip(case.progress, observation.moments, strict=False)
    ):
        found = _check_drops(case, progress, moment, index, target)
        dropped.update(moment.dropped)
        if not found and not case.is_encoder_decoder:
            found = _check_still_held(case, progress, moment, dropped, index, target)
        if not found:
            found = _check_free_slots(case, rows, moment, dropped, index, target)
        if found:
            return tuple(found)
    if observation.error is not None:
        return (
            finding(
                "no-error",
                case,
                observed=f"{observation.error.type}: {observation.error.message}",
                expected="free raises nothing",
                target=target,
                mechanism=f"free raises {observation.error.type}",
            ),
        )
    return ()


def _check_drops(
    case: FreeCase, progress: Progress, moment: FreeMoment, index: int, target: str
) -> list[Finding]:
    floor = progress.num_computed_tokens - progress.num_drafts_in_flight
    for feature_index in moment.dropped:
        feature = case.features[feature_index]
        if case.is_encoder_decoder:
            needed_to, lowest_progress = 1, progress.num_computed_tokens
            wanted = "kept until the first step has run"
        else:
            needed_to, lowest_progress = feature.end, floor
            wanted = (
                f"kept while its end {feature.end} is past {progress.num_computed_tokens} computed "
                f"- {progress.num_drafts_in_flight} drafts in flight = {floor}"
            )
        if not claims.freed_not_needed(True, needed_to, lowest_progress):
            return [
                finding(
                    "freed-not-needed",
                    case,
                    observed=f"moment {index}: the reference to {feature.describe()} is dropped",
                    expected=wanted,
                    target=target,
                    mechanism="reference dropped while it can still be read",
                )
            ]
    return []


def _check_still_held(
    case: FreeCase,
    progress: Progress,
    moment: FreeMoment,
    dropped: set[int],
    index: int,
    target: str,
) -> list[Finding]:
    floor = progress.num_computed_tokens - progress.num_drafts_in_flight
    references = dict(moment.book.references)
    for feature_index, feature in enumerate(case.features):
        if not claims.held_until_last_use(
            taken=feature_index not in dropped,
            is_needed=feature.has_row_at_or_past(floor),
            referenced=bool(references.get(feature.identifier)),
        ):
            return [
                finding(
                    "held-until-last-use",
                    case,
                    observed=f"moment {index}: {feature.identifier} is unreferenced",
                    expected=f"referenced: {feature.describe()} was taken and has a row at or past "
                    f"{floor}",
                    target=target,
                    mechanism="entry unreferenced before its last taken occurrence",
                )
            ]
    return []


def _check_free_slots(
    case: FreeCase,
    rows: dict[str, int],
    moment: FreeMoment,
    dropped: set[int],
    index: int,
    target: str,
) -> list[Finding]:
    if case.is_encoder_decoder:
        held = sum(f.num_rows for i, f in enumerate(case.features) if i not in dropped)
        wrong = wrong_slots(case.cache_size, held, held, moment.book)
    else:
        wrong = wrong_entry_slots(case.cache_size, rows, moment.book)
    if wrong is None:
        return []
    return [slots_finding(case, f"moment {index}", wrong, case.is_encoder_decoder, target)]
