"""Check the claims on an observation, whoever made it.

The monitor recomputes everything from the case and the raw observation, and never asks the target
for a verdict. One effect counts once: an error where the oracle has rows counts under the miss
claims and not again as missing rows.
"""

from __future__ import annotations

from spec.claims import predicates as claims
from spec.functions.cases import BookCase, Case, FreeCase, GatherCase, RowRangeCase, WindowCase
from spec.functions.findings import Finding, finding
from spec.functions.gather import (
    Gathered,
    InteriorMiss,
    ReadFeature,
    expected_gather,
    read_features,
)
from spec.functions.observations import (
    BookObservation,
    FreeObservation,
    GatherObservation,
    Observation,
    RangeObservation,
    RowIdentity,
)
from spec.monitor.functions.book_operations import check_book
from spec.monitor.functions.free_moments import check_free
from spec.rules.geometry import count_rows_before, meets


def check(case: Case, observation: Observation, target: str) -> tuple[Finding, ...]:
    """Findings of one observation of one case.

    Raises:
        TypeError: the observation is not of the case's kind.
    """
    match case, observation:
        case GatherCase(), GatherObservation():
            return check_gather(case, observation, target)
        case FreeCase(), FreeObservation():
            return check_free(case, observation, target)
        case BookCase(), BookObservation():
            return check_book(case, observation, target)
        case WindowCase(), RangeObservation():
            return check_window(case, observation, target)
        case RowRangeCase(), RangeObservation():
            return check_row_range(case, observation, target)
    raise TypeError(f"{type(observation).__name__} does not observe a {type(case).__name__}")


def check_gather(
    case: GatherCase, observation: GatherObservation, target: str
) -> tuple[Finding, ...]:
    """Compare one gather with the oracle at value level."""
    expected = expected_gather(case)
    reads = read_features(case)
    if isinstance(expected, InteriorMiss):
        return _check_interior_miss(case, expected, reads, observation, target)
    if observation.error is not None:
        return (_unexpected_error(case, reads, observation, target),)
    return _check_rows(case, expected, reads, observation, target)


def _boundary_misses(reads: tuple[ReadFeature, ...]) -> list[ReadFeature]:
    return [read for read in reads if read.boundary and not read.resident]


def _check_interior_miss(
    case: GatherCase,
    expected: InteriorMiss,
    reads: tuple[ReadFeature, ...],
    observation: GatherObservation,
    target: str,
) -> tuple[Finding, ...]:
    wanted = f"an error that names {expected.identifier!r}"
    error = observation.error
    if error is None:
        return (
            finding(
                "interior-miss-raises",
                case,
                observed=f"no error; rows at {_where(observation.mask)}",
                expected=wanted,
                target=target,
                mechanism="interior miss swallowed",
            ),
        )
    if error.names(expected.identifier):
        return ()
    # What is inside the processed range of another request is missing there, too, and named for it.
    inside = {read.spec.identifier for read in reads if not (read.boundary or read.resident)}
    for read in _boundary_misses(reads):
        identifier = read.spec.identifier
        if identifier not in inside and error.names(identifier):
            return (_unexpected_error(case, reads, observation, target),)
    return (
        finding(
            "interior-miss-raises",
            case,
            observed=f"{error.type}: {error.message}",
            expected=wanted,
            target=target,
            mechanism="interior miss raises another error",
        ),
    )


def _unexpected_error(
    case: GatherCase,
    reads: tuple[ReadFeature, ...],
    observation: GatherObservation,
    target: str,
) -> Finding:
    error = observation.error
    assert error is not None
    seen = f"{error.type}: {error.message}"
    for read in reads:
        raises = error.names(read.spec.identifier)
        if claims.boundary_miss_tolerated(read.boundary, read.resident, raises):
            continue
        return finding(
            "boundary-miss-tolerated",
            case,
            observed=seen,
            expected=f"{read.spec.describe()} starts at or past the processed end and is not "
            "resident: it is skipped and its positions keep their token embeddings",
            target=target,
            mechanism="boundary miss raises",
        )
    return finding(
        "no-error",
        case,
        observed=seen,
        expected="every feature that is read is resident: no error",
        target=target,
        mechanism=f"gather raises {error.type}",
    )


def _check_rows(
    case: GatherCase,
    expected: Gathered,
    reads: tuple[ReadFeature, ...],
    observation: GatherObservation,
    target: str,
) -> tuple[Finding, ...]:
    if observation.mask != expected.mask and _only_boundary_rows_lost(expected, reads, observation):
        return (
            finding(
                "boundary-used-when-resident",
                case,
                observed=f"rows at {_where(observation.mask)}",
                expected=f"rows at {_where(expected.mask)}: the boundary feature is resident",
                target=target,
                mechanism="resident boundary feature skipped",
            ),
        )
    found: list[Finding] = []
    if observation.mask != expected.mask:
        found.append(
            finding(
                "mask-exact",
                case,
                observed=f"mask at {_where(observation.mask)} of {len(observation.mask)}",
                expected=f"mask at {_where(expected.mask)} of {len(expected.mask)}",
                target=target,
                mechanism="mask differs",
            )
        )
    if observation.rows != expected.rows:
        found.append(
            finding(
                "rows-exact",
                case,
                observed=f"rows {_rows(observation.rows)}",
                expected=f"rows {_rows(expected.rows)}",
                target=target,
                mechanism="returned rows differ",
            )
        )
    if not found and observation.merged != expected.positions:
        found.append(
            finding(
                "rows-exact",
                case,
                observed=f"the model reads {_rows(observation.merged)}",
                expected=f"the model reads {_rows(expected.positions)}",
                target=target,
                mechanism="merged embeddings differ",
            )
        )
    return tuple(found)


def _only_boundary_rows_lost(
    expected: Gathered, reads: tuple[ReadFeature, ...], observation: GatherObservation
) -> bool:
    boundary = {read.spec.identifier for read in reads if read.boundary and read.resident}
    if len(observation.mask) != len(expected.mask) or not boundary:
        return False
    kept = tuple(
        row
        for row, seen in zip(expected.positions, observation.mask, strict=True)
        if row is not None and seen
    )
    return observation.rows == kept and all(
        seen == wanted or (wanted and row is not None and row.identifier in boundary)
        for seen, wanted, row in zip(
            observation.mask, expected.mask, expected.positions, strict=True
        )
    )


def check_runners_agree(
    case: GatherCase, first: GatherObservation, second: GatherObservation, target: str
) -> tuple[Finding, ...]:
    """Compare V1 and V2 beyond the oracle: how rows are split into tensors, and who raises.

    Only on their common domain: every request's shifted start lies below its prefill length. What
    one runner gets wrong by itself is found against the oracle and does not count again here.
    """
    if not in_common_domain(case):
        return ()
    for observation in (first, second):
        if check_gather(case, observation, target):
            return ()
    if first.slices == second.slices:
        return ()
    return (
        finding(
            "runners-agree",
            case,
            observed=f"V1 returns tensors of {first.slices} rows, V2 of {second.slices}",
            expected="the same tensors from both",
            target=target,
            mechanism="runners split rows differently",
        ),
    )


def in_common_domain(case: GatherCase) -> bool:
    """Whether neither runner takes any of the requests for a decode."""
    return all(
        request.num_computed_tokens + case.draft_lookahead < request.prefill_len
        for request in case.requests
    )


def check_window(
    case: WindowCase, observation: RangeObservation, target: str
) -> tuple[Finding, ...]:
    """Compare a window search with overlap tested feature by feature."""
    wanted = [
        index
        for index, feature in enumerate(case.features)
        if meets(feature.offset, feature.length, case.start, case.end)
    ]
    selected = list(range(observation.low, observation.high))
    if observation.error is None and selected == wanted:
        return ()
    error = observation.error
    return (
        finding(
            "window-exact",
            case,
            observed=f"features {selected}" if error is None else f"{error.type}: {error.message}",
            expected=f"features {wanted} of [{case.start},{case.end})",
            target=target,
            mechanism="window search selects other features",
        ),
    )


def check_row_range(
    case: RowRangeCase, observation: RangeObservation, target: str
) -> tuple[Finding, ...]:
    """Compare the rows of a range of positions with counting."""
    wanted = (
        count_rows_before(case.is_embed, case.start),
        count_rows_before(case.is_embed, case.end),
    )
    error = observation.error
    if error is None and (observation.low, observation.high) == wanted:
        return ()
    mask = "".join("T" if takes_row else "F" for takes_row in case.is_embed)
    return (
        finding(
            "row-range-exact",
            case,
            observed=f"rows [{observation.low},{observation.high})"
            if error is None
            else f"{error.type}: {error.message}",
            expected=f"rows [{wanted[0]},{wanted[1]}) for positions [{case.start},{case.end}) of "
            f"mask {mask}",
            target=target,
            mechanism="rows of an empty range" if case.start == case.end else "rows of a range",
        ),
    )


def _where(mask: tuple[bool, ...]) -> str:
    positions = [str(index) for index, takes_row in enumerate(mask) if takes_row]
    return "positions " + ", ".join(positions) if positions else "no position"


def _rows(rows: tuple[RowIdentity | None, ...]) -> str:
    words = ["token" if row is None else f"{row.identifier}.{row.row}" for row in rows]
    return "[" + ", ".join(words) + "]"
