"""The reference's worker: the order of its duties, and rows read alike with and without tensors."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from impl.reference.parts import Parts
from impl.reference.scheduling.output import NewRequestData, SchedulerOutput
from impl.reference.scheduling.request import MultiModalFeature, PlaceholderRange
from impl.reference.worker.row_reader import RowReaderV1, RowReaderV2
from impl.reference.worker.worker import Worker
from impl.target import RUNNERS
from impl.tensors import TensorSettings
from spec.record.steps import Encoding, Read, RowRun, ScheduledRequest

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
WITH_AND_WITHOUT = pytest.mark.parametrize(
    "tensors", [None, TensorSettings()], ids=["rows", "tensors"]
)
EACH_RUNNER = pytest.mark.parametrize("runner", RUNNERS)


def _feature(offset: int, identifier: str, mask: str | int) -> MultiModalFeature:
    """A feature at an offset with a mask as T and F, or dense of a length."""
    if isinstance(mask, int):
        return MultiModalFeature(identifier, PlaceholderRange(offset, mask))
    takes_row = torch.tensor([letter == "T" for letter in mask], dtype=torch.bool)
    return MultiModalFeature(identifier, PlaceholderRange(offset, len(mask), takes_row))


def _new(request: int, *features: MultiModalFeature, raw: tuple[int, ...] | None = None):
    return NewRequestData(request, features, range(len(features)) if raw is None else raw)


def _output(*scheduled: tuple[int, int, int], prefill_len: int = 100, **more) -> SchedulerOutput:
    """An output whose batch holds ``(request, num_computed_tokens, num_scheduled_tokens)``."""
    return SchedulerOutput(
        [ScheduledRequest(r, c, n, 0, 0, prefill_len, False) for r, c, n in scheduled],
        total_num_scheduled_tokens=sum(n for _, _, n in scheduled),
        **more,
    )


def _worker(runner="V1", tensors=None, *, look_ahead=1, parts=None, is_encoder_decoder=False):
    return Worker(
        parts or Parts(),
        runner,
        gather_lookahead=look_ahead,
        is_encoder_decoder=is_encoder_decoder,
        tensors=tensors,
    )


def _without_merged(read: Read | None) -> Read | None:
    return read and replace(read, merged=None)


@EACH_RUNNER
@WITH_AND_WITHOUT
def test_a_freed_hash_encoded_in_the_same_step_is_present(runner, tensors):
    """Otherwise the worker drops after it encodes, and the entry that came back is lost."""
    worker = _worker(runner, tensors)
    first = worker.execute(
        _output((0, 0, 4), new_requests=[_new(0, _feature(0, "X", 4))], encoder_inputs=[(0, 0)])
    )
    assert first.contents == (("X", 0),)
    again = worker.execute(
        _output(
            (1, 0, 4),
            new_requests=[_new(1, _feature(0, "X", 4))],
            encoder_inputs=[(1, 0)],
            free_encoder_mm_hashes=["X"],
        )
    )
    assert again.encoded == (Encoding(1, 1, 0, 4),)
    assert again.contents == (("X", 1),)
    assert again.target.rows == (RowRun(1, 0, 4),)


@WITH_AND_WITHOUT
@pytest.mark.parametrize(("runner", "encoding"), [("V1", 1), ("V2", 0)])
def test_v2_alone_does_not_encode_what_it_holds(runner, encoding, tensors):
    """Otherwise the order of a runner is the other's, and rows come from another encoding."""
    worker = _worker(runner, tensors)
    new = [_new(0, _feature(0, "X", 4)), _new(1, _feature(0, "X", 4))]
    seen = worker.execute(
        _output((0, 0, 4), (1, 0, 4), new_requests=new, encoder_inputs=[(0, 0), (1, 0)])
    )
    assert len(seen.encoded) == encoding + 1
    assert seen.contents == (("X", encoding),)
    assert seen.target.rows == (RowRun(encoding, 0, 4), RowRun(encoding, 0, 4))


@WITH_AND_WITHOUT
@pytest.mark.parametrize(("runner", "forgotten"), [("V1", ()), ("V2", (0,))])
def test_v2_alone_forgets_preempted_requests(runner, forgotten, tensors):
    """Otherwise raw data is kept that V2 drops, or lost that V1 keeps."""
    worker = _worker(runner, tensors)
    worker.execute(_output((0, 0, 2), new_requests=[_new(0, _feature(2, "X", 4))]))
    assert worker.execute(_output(preempted=[0])).forgotten == forgotten
    resumed = worker.execute(_output((0, 0, 2), encoder_inputs=[(0, 0)]))
    assert len(resumed.encoded) == (0 if forgotten else 1)


@EACH_RUNNER
def test_a_finished_request_is_forgotten_once_and_before_new_ones_come(runner):
    """Otherwise raw data is leaked, dropped with the newcomer's, or reported twice."""
    worker = _worker(runner)
    worker.execute(_output((0, 0, 2), new_requests=[_new(0, _feature(2, "X", 4))]))
    seen = worker.execute(
        _output((0, 0, 2), finished=[0], new_requests=[_new(0, _feature(2, "X", 4))])
    )
    assert (seen.forgotten, seen.received) == ((0,), ((0, 0),))
    assert worker.execute(_output(finished=[0, 7])).forgotten == (0,)
    assert worker.execute(_output(finished=[0])).forgotten == ()


@EACH_RUNNER
@WITH_AND_WITHOUT
def test_an_input_without_raw_data_is_not_encoded(runner, tensors):
    """Otherwise a tensor appears from nothing, and the missing raw data is never seen."""
    worker = _worker(runner, tensors)
    new = [_new(0, _feature(0, "X", 2), _feature(2, "Y", 2), raw=(1,))]
    seen = worker.execute(
        _output((0, 0, 4), new_requests=new, encoder_inputs=[(0, 0), (0, 1), (5, 0)])
    )
    assert seen.received == ((0, 1),)
    assert seen.encoded == (Encoding(0, 0, 1, 2),)
    assert seen.target.error is not None
    assert seen.target.error.names("X")


@EACH_RUNNER
def test_the_next_turn_keeps_the_raw_data_of_the_turns_before(runner):
    """Otherwise an item of an earlier turn that was evicted can never be encoded again."""
    worker = _worker(runner)
    x, y = _feature(0, "X", 2), _feature(4, "Y", 2)
    worker.execute(_output((0, 0, 2), new_requests=[_new(0, x)], encoder_inputs=[(0, 0)]))
    seen = worker.execute(
        _output(
            (0, 2, 4),
            new_requests=[_new(0, x, y, raw=(1,))],
            free_encoder_mm_hashes=["X"],
            encoder_inputs=[(0, 0), (0, 1)],
        )
    )
    assert seen.received == ((0, 1),)
    assert seen.contents == (("X", 1), ("Y", 2))


@EACH_RUNNER
@WITH_AND_WITHOUT
def test_errors_are_recorded_and_the_step_goes_on(runner, tensors):
    """Otherwise one miss hides the drafter's read, or stops the run."""
    worker = _worker(runner, tensors)
    seen = worker.execute(_output((0, 0, 4), new_requests=[_new(0, _feature(0, "X", 5))]))
    for read in (seen.target, seen.drafter):
        assert read.error is not None
        assert read.error.type == "RuntimeError"
        assert read.error.names("X")
        assert (read.rows, read.slices, read.mask) == ((), (), ())
    after = worker.execute(_output((0, 4, 1), encoder_inputs=[(0, 0)]))
    assert after.target.rows == (RowRun(0, 4, 1),)
    unknown = worker.execute(_output((3, 0, 1)))
    assert unknown.target.error is not None
    assert unknown.target.error.type == "KeyError"


@EACH_RUNNER
@WITH_AND_WITHOUT
def test_a_drop_leaves_what_was_seen_as_it_was_and_a_reset_drops_all(runner, tensors):
    """Otherwise an eviction changes rows that were read before it, or a reset leaves tensors."""
    worker = _worker(runner, tensors, look_ahead=0)
    x = _feature(0, "X", "TTFTT")
    seen = worker.execute(_output((0, 0, 5), new_requests=[_new(0, x)], encoder_inputs=[(0, 0)]))
    worker.reset()
    after = worker.execute(_output((0, 5, 1)))
    assert after.contents == ()
    assert after.target == Read(merged=None if tensors is None else ())
    assert seen.drafter is None
    merged = None if tensors is None else (RowRun(0, 0, 2, 0), RowRun(0, 2, 2, 3))
    assert seen.target == Read((RowRun(0, 0, 4),), (4,), ((0, 2), (3, 5)), merged)
    assert worker.execute(_output((0, 0, 1), encoder_inputs=[(0, 0)])).contents == (("X", 1),)


@EACH_RUNNER
@WITH_AND_WITHOUT
def test_cross_attention_reads_items_in_the_first_step(runner, tensors):
    """Otherwise an encoder-decoder run shows gathers, later steps, or no missing item."""
    worker = _worker(runner, tensors, look_ahead=0, is_encoder_decoder=True)
    new = [_new(0, _feature(0, "X", 3)), _new(1, _feature(0, "Y", 2))]
    seen = worker.execute(
        _output((0, 0, 4), (1, 0, 4), new_requests=new, encoder_inputs=[(0, 0), (1, 0)])
    )
    assert seen.target.rows == (RowRun(0, 0, 3), RowRun(1, 0, 2))
    assert seen.drafter is None
    assert worker.execute(_output((0, 4, 1), (1, 4, 1))).target == Read()
    lost = worker.execute(_output((0, 0, 4), free_encoder_mm_hashes=["X"])).target
    assert lost.error is not None
    assert (lost.error.type, lost.error.names("X"), lost.rows) == ("RuntimeError", True, ())


@EACH_RUNNER
@WITH_AND_WITHOUT
def test_advance_does_what_execute_does(runner, tensors):
    """Otherwise a run without a recorder is another run."""
    recorded, unrecorded = _worker(runner, tensors), _worker(runner, tensors)
    x, y = _feature(0, "X", 4), _feature(4, "Y", 4)
    outputs = [
        _output((0, 0, 4), new_requests=[_new(0, x, y)], encoder_inputs=[(0, 0)]),
        _output((0, 4, 2), encoder_inputs=[(0, 1)], free_encoder_mm_hashes=["X"]),
        _output((0, 0, 4)),
        _output((9, 0, 4)),
    ]
    for output in outputs:
        recorded.execute(output)
        unrecorded.advance(output)
    last = _output((0, 4, 4), encoder_inputs=[(0, 0)])
    assert unrecorded.execute(last) == recorded.execute(last)


def test_a_fault_replaces_the_readers():
    """Otherwise a run without tensors cannot show a fault of the gathers."""

    def never(*_: object) -> bool:
        return False

    parts = Parts(
        row_reader_v1=type("RowReaderV1", (RowReaderV1,), {"_tolerates_miss": never}),
        row_reader_v2=type("RowReaderV2", (RowReaderV2,), {"_tolerates_miss": never}),
    )
    for runner in RUNNERS:
        output = _output((0, 0, 4), new_requests=[_new(0, _feature(4, "X", 4))])
        assert _worker(runner).execute(output).drafter == Read()
        assert _worker(runner, parts=parts).execute(output).drafter.error is not None


MASKS = st.one_of(
    st.integers(1, 6), st.text("TF", min_size=1, max_size=6).filter(lambda mask: "T" in mask)
)


@st.composite
def prompts(draw) -> tuple[tuple[MultiModalFeature, ...], int]:
    """Disjoint features, and where the last of them ends. Hashes repeat, with other masks too."""
    features: list[MultiModalFeature] = []
    end = 0
    for _ in range(draw(st.integers(0, 4))):
        offset = end + draw(st.integers(0, 2))
        features.append(_feature(offset, draw(st.sampled_from("XYZ")), draw(MASKS)))
        end = features[-1].mm_position.end
    return tuple(features), end


@st.composite
def runs(draw) -> list[SchedulerOutput]:
    """A few steps: windows anywhere, inputs encoded or not, drops, ends and preemptions."""
    drawn = draw(st.lists(prompts(), min_size=1, max_size=3))
    inputs = [(r, f) for r, (features, _) in enumerate(drawn) for f in range(len(features))]
    outputs = []
    for step in range(draw(st.integers(1, 3))):
        batch = draw(st.lists(st.sampled_from(range(len(drawn))), unique=True))
        scheduled = [
            ScheduledRequest(
                request,
                draw(st.integers(0, drawn[request][1] + 1)),
                draw(st.integers(1, 8)),
                0,
                0,
                drawn[request][1] + draw(st.integers(0, 2)),
                False,
            )
            for request in batch
        ]
        outputs.append(
            SchedulerOutput(
                scheduled,
                [_new(r, *features) for r, (features, _) in enumerate(drawn) if not step],
                draw(st.permutations(inputs)) if draw(st.booleans()) else draw(_some(inputs)),
                draw(_some(list("XYZ"))),
                draw(_some([0])) if step == 2 else [],
                draw(_some(list(range(len(drawn))))) if step else [],
                sum(s.num_scheduled_tokens for s in scheduled),
            )
        )
    return outputs


def _some(of: list) -> st.SearchStrategy[list]:
    return st.lists(st.sampled_from(of), unique=True, max_size=2) if of else st.just([])


@EACH_RUNNER
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@given(outputs=runs(), look_ahead=st.integers(0, 3), hidden_size=st.sampled_from([2, 3, 4, 7]))
def test_tensors_and_integers_read_alike(device, runner, dtype, outputs, look_ahead, hidden_size):
    """Otherwise a run without tensors shows other rows, masks or errors than the real tensors."""
    tensors = _worker(runner, TensorSettings(device, dtype, hidden_size), look_ahead=look_ahead)
    integers = _worker(runner, look_ahead=look_ahead)
    for output in outputs:
        seen, expected = tensors.execute(output), integers.execute(output)
        for read in (seen.target, seen.drafter):
            if read is not None:
                assert _places(read) == _expected_places(read)
        assert (
            replace(
                seen,
                target=_without_merged(seen.target),
                drafter=_without_merged(seen.drafter),
            )
            == expected
        )


def _places(read: Read) -> list[tuple[int, int, int]]:
    return [
        (run.position + index, run.encoding, run.first_row + index)
        for run in read.merged or ()
        for index in range(run.num_rows)
    ]


def _expected_places(read: Read) -> list[tuple[int, int, int]]:
    """Row after row at the mask's positions; nothing is merged where their counts differ."""
    positions = [position for low, high in read.mask for position in range(low, high)]
    rows = [
        (run.encoding, run.first_row + index) for run in read.rows for index in range(run.num_rows)
    ]
    if len(positions) != len(rows):
        return []
    return [(p, encoding, row) for p, (encoding, row) in zip(positions, rows, strict=True)]
