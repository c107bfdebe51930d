"""The monitor of the loop on hand-built traces: reads, and what is asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spec.history.layout import FeatureLayout
from spec.monitor.monitor import LoopMonitor
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest
from spec.record.steps import (
    Call,
    Encoding,
    ErrorSeen,
    EventSeen,
    Read,
    RowRun,
    WorkerSeen,
)
from tests.support.loop_traces import (
    CLEAN,
    CONFIG,
    CONTENTS,
    EMPTY,
    ERROR_A,
    FIRST,
    FIRST_UPDATE,
    HOLDS_B,
    SCENARIO,
    SECOND,
    THIRD,
    arrival,
    book,
    check,
    claims,
    clean_with,
    edited,
    enters,
    fits,
    hit,
    of_other_claims,
    read,
    req,
    scheduled,
    state,
)


def test_a_right_run_is_clean_and_its_premises_happened() -> None:
    """A false alarm, or a monitor that checks nothing, would show here."""
    monitor = LoopMonitor(SCENARIO, "V1")
    for step in CLEAN:
        assert of_other_claims(monitor.observe(step)) == ()
    assert monitor.finish("idle") == ()
    for claim in (
        "target-resident",
        "drafter-resident-or-boundary",
        "views-agree",
        "worker-bounded",
        "dropped-in-update",
        "freed-not-needed",
        "held-until-last-use",
        "fresh-tensor",
        "payload-available",
        "need-agrees",
        "rows-exact",
        "mask-exact",
        "boundary-used-when-resident",
        "slots-conserved",
        "no-error",
        "released",
    ):
        assert monitor.premises[claim] > 0, claim
    assert monitor.premises["interior-miss-raises"] == 0


ERROR_B = Read(error=ErrorSeen("RuntimeError", "Encoder cache miss for B."))

# Room for neither: A is refused, and the range runs over it all the same.
REFUSED_A = replace(
    FIRST,
    calls=(hit(0, answer=False), fits(0, answer=False)),
    encoder_inputs=(),
    state=state([req(0, "running", 4)], book({}, 8, 8)),
    worker=WorkerSeen(((0, 0), (0, 1)), (), (), (), ERROR_A, ERROR_A),
)


def test_target_miss_is_found_and_its_error_is_right() -> None:
    assert claims([arrival(), REFUSED_A]) == {"target-resident"}
    (finding,) = check([arrival(), REFUSED_A])
    assert (finding.pass_index, finding.request, finding.feature) == (0, 0, 0)
    assert finding.mechanism == "range not cut before a refused feature"


def test_swallowed_target_miss() -> None:
    swallowed = edited(REFUSED_A, target=EMPTY)
    assert claims([arrival(), swallowed]) == {"target-resident", "interior-miss-raises"}


def test_error_that_names_another_hash() -> None:
    other = edited(REFUSED_A, target=Read(error=ErrorSeen("KeyError", "'A2'")))
    assert claims([arrival(), other]) == {"target-resident", "interior-miss-raises"}


GAP = Scenario(CONFIG, (ScenarioRequest(9, (Feature(2, 4, "A", (False, False, True, True)),)),))
GAP_REFUSED = replace(
    REFUSED_A, worker=WorkerSeen(((0, 0),), (), (), (), target=EMPTY, drafter=ERROR_A)
)


def test_drafter_miss_inside_the_processed_range() -> None:
    """A mask with a leading gap: its first row is the drafter's, and it does not lie ahead."""
    assert claims([arrival(), GAP_REFUSED], GAP) == {"drafter-resident-or-boundary"}


def test_swallowed_drafter_miss() -> None:
    assert claims([arrival(), edited(GAP_REFUSED, drafter=EMPTY)], GAP) == {
        "drafter-resident-or-boundary",
        "interior-miss-raises",
    }


REFUSED_B = replace(
    FIRST,
    calls=(hit(0, answer=False), fits(0), hit(1, answer=False), fits(1, answer=False), enters(0)),
    encoder_inputs=((0, 0),),
    state=state([req(0, "running", 4)], book({"A": (0,)}, 4, 4)),
    worker=WorkerSeen(
        ((0, 0), (0, 1)),
        (),
        (Encoding(0, 0, 0, 4),),
        (("A", 0),),
        read(((0, 0, 4),), (0, 4)),
        read(((0, 1, 3),), (0, 3)),
    ),
)


def test_tolerated_boundary_miss_is_clean() -> None:
    assert claims([arrival(), REFUSED_B]) == set()


def test_boundary_miss_that_raises() -> None:
    assert claims([arrival(), edited(REFUSED_B, drafter=ERROR_B)]) == {"boundary-miss-tolerated"}


def test_error_without_a_miss_counts_under_the_miss_claims() -> None:
    assert claims(clean_with(edited(SECOND, target=ERROR_B))) == {"interior-miss-raises"}


def test_boundary_feature_that_nobody_asked_for() -> None:
    unasked = replace(REFUSED_B, calls=(hit(0, answer=False), fits(0), enters(0)))
    assert claims([arrival(), unasked]) == {"need-agrees"}


def test_resident_boundary_feature_skipped() -> None:
    skipped = edited(FIRST, drafter=read(((0, 1, 3),), (0, 3)))
    assert claims(clean_with(skipped)) == {"boundary-used-when-resident"}


def test_worker_that_lost_a_tensor() -> None:
    assert claims(clean_with(edited(THIRD, contents=(("A", 0),)))) == {"views-agree"}


def test_worker_that_keeps_what_the_book_does_not_know() -> None:
    """Its rows come on top of a full cache."""
    surplus = edited(THIRD, contents=(*CONTENTS, ("Z", 0)))
    assert claims(clean_with(surplus)) == {"views-agree", "worker-bounded"}


def test_notice_that_names_an_entry() -> None:
    assert claims(clean_with(replace(SECOND, notices=("B",)))) == {"evicted-not-live"}


def test_input_without_raw_data() -> None:
    assert claims(clean_with(edited(FIRST, received=((0, 0),)))) == {"payload-available"}


def test_raw_data_forgotten_before_it_is_used() -> None:
    late = edited(replace(THIRD, encoder_inputs=((0, 1),)), forgotten=(0,))
    assert claims(clean_with(late)) == {"payload-available"}


def test_tensor_of_another_content() -> None:
    wrong = edited(FIRST, encoded=(Encoding(0, 0, 0, 4), Encoding(1, 0, 0, 4)))
    assert claims(clean_with(wrong)) == {"fresh-tensor"}


def test_tensor_with_another_number_of_rows() -> None:
    """It counts once: the rows that differ for want of rows are not reported again."""
    wrong = edited(
        FIRST,
        encoded=(Encoding(0, 0, 0, 4), Encoding(1, 0, 1, 2)),
    )
    short = edited(SECOND, target=read(((1, 0, 2),), (0, 4)), drafter=read(((1, 1, 1),), (0, 3)))
    assert claims([arrival(), wrong, FIRST_UPDATE, short]) == {"fresh-tensor"}


def test_merge_that_fails_for_want_of_rows() -> None:
    """The error is the tensor's fault; no miss claim is broken."""
    wrong = edited(
        FIRST,
        encoded=(Encoding(0, 0, 0, 3), Encoding(1, 0, 1, 4)),
        target=Read(error=ErrorSeen("ValueError", "3 rows for 4 positions")),
        drafter=read(((0, 1, 2), (1, 0, 1)), (0, 4)),
    )
    assert claims([arrival(), wrong]) == {"fresh-tensor"}


def test_tensor_from_before_a_reset() -> None:
    reset = EventSeen(
        1, "reset", -1, (Call("reset"),), (), state([req(0, "running", 4)], book({}, 8, 8))
    )
    again = replace(
        SECOND,
        calls=(hit(1, answer=False), fits(1), enters(1)),
        encoder_inputs=((0, 1),),
        state=state([req(0, "running", 8)], book({"B": (0,)}, 4, 4)),
    )
    stale = edited(again, contents=(("B", 1),))
    assert claims([*CLEAN[:3], reset, stale]) == {"fresh-tensor"}
    assert (
        claims(
            [
                *CLEAN[:3],
                reset,
                edited(
                    again,
                    encoded=(Encoding(2, 0, 1, 4),),
                    contents=(("B", 2),),
                    target=read(((2, 0, 4),), (0, 4)),
                    drafter=read(((2, 1, 3),), (0, 3)),
                ),
            ]
        )
        == set()
    )


@pytest.mark.parametrize(
    "rows",
    [((0, 0, 3),), ((0, 0, 5),), ((0, 1, 4),), ((-1, 0, 4),), ()],
    ids=["fewer", "more", "shifted", "unknown", "none"],
)
def test_other_rows(rows: tuple[tuple[int, int, int], ...]) -> None:
    wrong = edited(FIRST, target=read(rows, (0, 4)))
    assert claims(clean_with(wrong)) == {"rows-exact"}


def test_rows_of_another_tensor_count_as_a_stale_tensor() -> None:
    wrong = edited(SECOND, target=read(((0, 0, 4),), (0, 4)))
    assert claims(clean_with(wrong)) == {"fresh-tensor"}


def test_slices_that_do_not_add_up() -> None:
    assert FIRST.worker is not None
    wrong = edited(FIRST, target=replace(FIRST.worker.target, slices=(3,)))
    assert claims(clean_with(wrong)) == {"rows-exact"}


def test_merge_into_other_positions() -> None:
    assert FIRST.worker is not None
    right = replace(FIRST.worker.target, merged=(RowRun(0, 0, 4, 0),))
    wrong = replace(FIRST.worker.target, merged=(RowRun(0, 0, 3, 0), RowRun(0, 3, 1, 5)))
    assert claims(clean_with(edited(FIRST, target=right))) == set()
    assert claims(clean_with(edited(FIRST, target=wrong))) == {"rows-exact"}


def test_other_mask() -> None:
    wrong = edited(FIRST, target=read(((0, 0, 4),), (0, 3)))
    assert claims(clean_with(wrong)) == {"mask-exact"}


def test_rows_of_one_tensor_may_be_joined_or_not() -> None:
    parts = Read((RowRun(0, 0, 1), RowRun(0, 1, 3)), (4,), ((0, 2), (2, 4)))
    assert claims(clean_with(edited(FIRST, target=parts))) == set()


WHOLE = Scenario(replace(CONFIG, whole_items=True), SCENARIO.requests)


def test_item_that_is_split() -> None:
    split = replace(
        SECOND,
        scheduled=(scheduled(4, 2),),
        state=state([req(0, "running", 6)], book(HOLDS_B, 0, 4)),
        worker=WorkerSeen(
            (), (), (), CONTENTS, read(((1, 0, 2),), (0, 2)), read(((1, 1, 2),), (0, 2))
        ),
    )
    short = replace(SCENARIO.config, long_prefill_token_threshold=2)
    whole = replace(WHOLE, config=replace(short, whole_items=True))
    assert claims([*CLEAN[:3], split], whole) == {"item-whole"}
    assert claims([*CLEAN[:3], split], replace(SCENARIO, config=short)) == set()
    assert claims(CLEAN, WHOLE, "idle") == set()


def test_start_inside_an_item_is_exempt_and_counted() -> None:
    inside = replace(
        SECOND,
        scheduled=(scheduled(5, 2),),
        state=state([req(0, "running", 7)], book(HOLDS_B, 0, 4)),
        worker=WorkerSeen(
            (), (), (), CONTENTS, read(((1, 1, 2),), (0, 2)), read(((1, 2, 2),), (0, 2))
        ),
    )
    short = replace(WHOLE.config, long_prefill_token_threshold=2)
    monitor = LoopMonitor(replace(WHOLE, config=short), "V1")
    for step in (*CLEAN[:3], inside):
        assert of_other_claims(monitor.observe(step)) == ()
    assert monitor.premises["item-whole.exempt"] == 1


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (4, {"need-agrees"}),
        (5, set()),
        (7, set()),
        (8, {"need-agrees", "pass-uses-budget"}),
    ],
)
def test_only_a_cut_before_a_whole_item_needs_no_question(budget: int, expected: set[str]) -> None:
    """With tokens for a part of B the range was cut; with fewer it ended there, with more it ran.

    Else a scheduler that never asks for an item at its range's end would pass.
    """
    unasked = replace(REFUSED_B, calls=(hit(0, answer=False), fits(0), enters(0)))
    config = replace(WHOLE.config, max_num_batched_tokens=budget)
    assert claims([arrival(), unasked], replace(WHOLE, config=config)) == expected


@pytest.mark.parametrize("mask", [None, (False, True, True, False, True)], ids=["dense", "masked"])
def test_layout_agrees_with_the_feature_position_by_position(mask: tuple[bool, ...] | None) -> None:
    """Runs are a faster way to count; a wrong bound would misjudge every gather."""
    feature = Feature(3, 5, "A", mask)
    layout = FeatureLayout(0, feature, "A")
    for start in range(10):
        for end in range(start, 11):
            counted = [
                (position, feature.row_at(position))
                for position in range(start, end)
                if feature.takes_row_at(position)
            ]
            runs = [
                (position + step, row + step)
                for position, row, count in layout.segments(start, end)
                for step in range(count)
            ]
            assert runs == counted
            assert layout.has_row_in(start, end) == bool(counted)
