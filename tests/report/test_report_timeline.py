"""The picture of a run as data: what it must hold, whatever the run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest

from impl.targets.runs import ReferenceLoop
from proofs.report.near.neighbours import variations
from proofs.report.story.conditions import ASKED_FOR, conditions_of
from proofs.report.story.focus import MOST_STEPS, place_of, step_of
from proofs.report.story.timeline import Gap, StepRow, Timeline
from proofs.report.story.timeline_build import letters_of, timeline
from proofs.report.text.letters import letters_of_scenario
from proofs.run.record import record
from proofs.run.targets import faults_of
from proofs.search.runs.results import LoopCounterexample
from spec.monitor.monitor import LoopMonitor
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest
from tests.support.report_runs import SWITCHES, drawn, of_switch, violations


@cache
def examples() -> tuple[LoopCounterexample, ...]:
    """Every violation of every switch, and drawn ones."""
    return (*(example for name in SWITCHES for example in of_switch(name)), *drawn(400))


@cache
def pictures() -> tuple[tuple[LoopCounterexample, Timeline], ...]:
    return tuple((example, timeline(example.trace, example.finding)) for example in examples())


def steps(picture: Timeline) -> list[StepRow]:
    return [row for row in picture.rows if isinstance(row, StepRow)]


def test_there_is_enough_to_look_at() -> None:
    """Properties over a handful of runs would say little."""
    claims = {example.finding.claim for example in examples()}
    assert len(examples()) > 200
    assert len(claims) > 20
    assert any(example.finding.loop is not None for example in examples())


def test_every_feature_has_a_bar_with_its_rows() -> None:
    """A picture without an item, or with a row where the mask has none, tells another run."""
    for example, picture in pictures():
        for index, request in enumerate(example.trace.scenario.requests):
            track = next(track for track in picture.tracks if track.request == index)
            bars = {bar.feature: bar for bar in track.bars}
            for number, feature in enumerate(request.features):
                bar = bars[number]
                assert bar.span == (feature.offset, feature.end)
                drawn_rows = {p for start, end in bar.rows for p in range(start, end)}
                assert drawn_rows == {p for p in range(*bar.span) if feature.takes_row_at(p)}
                assert picture.entries[bar.entry].identifier == feature.identifier


def test_bars_of_a_request_lie_beside_each_other() -> None:
    """Two items over one another could not be told apart."""
    for _, picture in pictures():
        for track in picture.tracks:
            for left, right in pairwise(track.bars):
                assert left.span.end <= right.span.start
            for bar in track.bars:
                for (_, end), (start, _) in pairwise(bar.rows):
                    assert end < start


def test_a_shared_hash_looks_alike_everywhere() -> None:
    """Who cannot see that two items are one entry does not understand a hit."""
    for example, picture in pictures():
        letters = letters_of(example.trace)
        assert len(set(letters.values())) == len(letters)
        orders = {entry.identifier: entry.order for entry in picture.entries}
        assert len(set(orders.values())) == len(orders)
        assert [entry.order for entry in picture.entries] == list(range(len(picture.entries)))


def test_the_contradiction_is_marked_in_the_step_in_which_it_shows() -> None:
    """A mark in another step sends the reader to an innocent one."""
    for example, picture in pictures():
        trace, finding = example.trace, example.finding
        row = picture.rows[picture.contradiction]
        assert isinstance(row, StepRow)
        assert row.mark is not None
        assert sum(row.mark is not None for row in steps(picture)) == 1
        monitor = LoopMonitor(trace.scenario, trace.runner)
        found = {f: i for i, step in enumerate(trace.steps) for f in monitor.observe(step)}
        if finding in found:
            assert row.number == found[finding]
        if finding.request is not None and finding.feature is not None:
            bar = picture.bar(finding.request, finding.feature)
            assert bar is not None
            assert row.mark.span == bar.span


def test_rows_are_the_steps_of_the_trace() -> None:
    """A picture that skips, repeats or invents a step is a picture of something else."""
    for example, picture in pictures():
        numbers: list[int] = []
        for row in picture.rows:
            if isinstance(row, Gap):
                numbers += range(row.first, row.last + 1)
            else:
                step = example.trace.steps[row.number]
                assert (row.kind, row.pass_index) == (step.kind, place_of(step))
                numbers.append(row.number)
        assert numbers == list(range(len(numbers)))


def test_brackets_are_what_the_pass_scheduled() -> None:
    """The processed range and the drafter's window are the whole point of the picture."""
    for example, picture in pictures():
        ahead = example.trace.scenario.config.gather_lookahead
        for row in steps(picture):
            step = example.trace.steps[row.number]
            if step.kind != "pass":
                continue
            lanes = {lane.request: lane for lane in row.lanes}
            for entry in step.scheduled:
                start = entry.num_computed_tokens
                end = start + entry.num_scheduled_tokens
                lane = lanes[entry.request]
                assert lane.processed == (start, end)
                # One switch lets a request be scheduled for less than nothing.
                is_read = end > start and step.worker is not None
                drafts = is_read and step.worker.drafter is not None and ahead
                assert lane.drafter == ((start + ahead, end + ahead) if drafts else None)
            for lane in row.lanes:
                if lane.request not in {entry.request for entry in step.scheduled}:
                    assert lane.num_tokens == 0


def test_the_cache_is_the_book_and_the_worker() -> None:
    """A cache that is drawn fuller or emptier than it is hides or invents the shortage."""
    for example, picture in pictures():
        config = example.trace.scenario.config
        for row in steps(picture):
            step = example.trace.steps[row.number]
            cache = row.cache
            assert cache.size == config.encoder_cache_size
            assert cache.num_free == step.state.book.num_free_slots
            held = {
                picture.entries[state.entry].identifier: state.holders
                for state in cache.entries
                if state.state in ("referenced", "freeable")
            }
            if not config.is_encoder_decoder:
                book = {name: tuple(sorted(who)) for name, who in step.state.book.references}
                assert held == book
            if step.kind == "pass" and step.worker is not None:
                resident = {
                    picture.entries[state.entry].identifier
                    for state in cache.entries
                    if state.resident
                }
                assert resident == {name for name, _ in step.worker.contents}


def test_a_book_that_drifts_is_seen_to_drift() -> None:
    """The drift of a slot is the whole story of two faults."""
    seen = 0
    for example, picture in pictures():
        row = picture.rows[picture.contradiction]
        assert isinstance(row, StepRow)
        if example.finding.claim == "slots-conserved" and "true sum" in example.finding.mechanism:
            assert row.cache.drifted
            seen += 1
    assert seen
    sound = 0
    for example, picture in pictures():
        scenario, target = example.trace.scenario, ReferenceLoop(faults_of(example.trace.target))
        monitor = LoopMonitor(scenario, example.trace.runner)
        findings = record(
            target, scenario, example.trace.runner, max_passes=60, monitor=monitor
        ).findings
        if any(finding.claim == "slots-conserved" for finding in findings):
            continue
        assert not any(row.cache.drifted for row in steps(picture)), target.name
        sound += 1
    assert sound > 100


def test_a_test_for_room_is_told_with_its_numbers() -> None:
    """Without the numbers nobody can check why an item found no room."""
    num_tests = 0
    for _, picture in pictures():
        for row in steps(picture):
            for reason in row.reasons:
                if "gets no room" in reason.text or "gets room" in reason.text:
                    assert " <= " in reason.because, reason
                    num_tests += 1
    assert num_tests > 300


def test_every_hash_has_a_letter_of_its_own() -> None:
    """Two hashes under one letter would be one entry to the reader."""
    names = [f"sha256:{number:03}" for number in range(60)]
    features = tuple(Feature(number, 1, name) for number, name in enumerate(names))
    config = EngineConfig(8, 60, 60, 100)
    letters = letters_of_scenario(Scenario(config, (ScenarioRequest(60, features),)))
    assert list(letters) == names
    assert len(set(letters.values())) == 60
    assert list(letters.values())[24:29] == ["Y", "Z", "AA", "AB", "AC"]
    short = letters_of_scenario(Scenario(config, (ScenarioRequest(2, (Feature(0, 1, "X"),)),)))
    assert short == {"X": "X"}


def test_the_lasso_goes_back_to_where_the_circle_begins() -> None:
    """A loop drawn to another pass would name other passes as those that repeat."""
    seen = set()
    for example, picture in pictures():
        finding = example.finding
        if finding.loop is None:
            assert picture.lasso is None
            continue
        assert picture.lasso is not None
        first, last = picture.rows[picture.lasso.first], picture.rows[picture.lasso.last]
        assert isinstance(first, StepRow)
        assert isinstance(last, StepRow)
        assert first.pass_index == finding.loop[0]
        assert first.kind == "pass"
        assert last.pass_index >= finding.loop[1]
        assert picture.lasso.first <= picture.contradiction <= picture.lasso.last
        seen.add(finding.claim)
    assert seen == {"no-stall", "no-thrash"}


_AT_MOST = re.compile(r"((?:\d+ \+ )*\d+) <= (\d+)(?: is (true|false))?")
_AT_LEAST = re.compile(r"(\d+) >= (\d+) \+ (\d+) is (true|false)")
_ALIGNED = re.compile(r"(\d+) // (\d+) \* (\d+) - (\d+) = (\d+)")
_DIFFERENCE = re.compile(r"(?<!\* )\b(\d+) - (?:\((\d+) \+ (\d+)\)|(\d+)) = (\d+)")


_NAMES = re.compile(
    r"\b(?:offset|computed|scheduled|length|progress|shift|chosen|needed|available|budget|margin|size|"
    r"referenced) "
    r"(?=\(?\d)"
)
"""What the numbers are called."""


def _sums(text: str) -> Iterator[bool]:
    """Whether each sum and comparison in a text is right."""
    text = _NAMES.sub("", text)
    for left, right, said in _AT_MOST.findall(text):
        is_true = sum(map(int, left.split(" + "))) <= int(right)
        yield is_true == (said != "false")
    for left, start, count, said in _AT_LEAST.findall(text):
        yield (int(left) >= int(start) + int(count)) == (said == "true")
    for left, size, again, start, right in _ALIGNED.findall(text):
        rounded = int(left) // int(size) * int(size)
        yield size == again and max(rounded - int(start), 0) == int(right)
    for left, start, shift, alone, right in _DIFFERENCE.findall(text):
        taken = int(alone) if alone else int(start) + int(shift)
        yield max(int(left) - taken, 0) == int(right)


def test_the_integers_of_every_reason_add_up() -> None:
    """One sum that is wrong, and nobody believes the rest."""
    checked = 0
    for _, picture in pictures():
        for row in steps(picture):
            for reason in row.reasons:
                for is_right in (*_sums(reason.text), *_sums(reason.because)):
                    assert is_right, (reason.text, reason.because)
                    checked += 1
                short = reason.short.replace(" false", " is false")
                assert all(_sums(short)), short
    assert checked > 500
    assert list(_sums("8 + 1 <= 8 is true")) == [False]
    assert list(_sums("chosen 8 + needed 1 <= available 8, the rows")) == [False]
    assert list(_sums("offset 4 >= computed 2 + scheduled 3 is true")) == [False]
    assert list(_sums("5 - (0 + 1) = 3, 4 >= 2 + 3 is true")) == [False, False]


_BARE = re.compile(r"\d+ (?:[<>]=|[+-]) \(?\d")


def test_every_number_of_a_test_has_a_name() -> None:
    """Which number is the offset and which the progress, nobody could tell from 4 <= 0 + 4."""
    named = 0
    for example, picture in pictures():
        reasons = [reason for row in steps(picture) for reason in row.reasons]
        texts = [text for reason in reasons for text in (reason.text, reason.because)]
        texts += [condition.text for condition in conditions_of(example.finding, picture)]
        for text in texts:
            # What the monitor observed is in its own words.
            if not text.startswith(("seen: ", ASKED_FOR)):
                assert not _BARE.search(text), text
            named += "progress" in text or "needed" in text
    assert named > 100
    assert _BARE.search("4 >= 0 + 4 is true")


def test_a_reference_that_stays_is_told_with_its_test() -> None:
    """The deferred free is decided by one token; the reader has to see which."""
    (example,) = of_switch("deferred-free-margin")
    texts = [
        reason for row in steps(timeline(example.trace, example.finding)) for reason in row.reasons
    ]
    stays = next(reason for reason in texts if "still its reference stays" in reason.text)
    assert "offset 0 + length 1 <= progress 1 is true" in stays.text
    assert "offset 0 + length 1 + margin 1 <= progress 1 is false" in stays.because
    assert stays.is_bad


def long_scenario(num_requests: int, max_tokens: int) -> Scenario:
    """Requests that come one after the other, the last of which finds no room at a boundary."""
    config = EngineConfig(
        4, 8, 4, 400, scheduler_lookahead=1, gather_lookahead=1, num_speculative_tokens=1
    )
    plain = [
        ScenarioRequest(5, (Feature(1, 3, f"item {index}"),), arrival=index, max_tokens=max_tokens)
        for index in range(num_requests)
    ]
    last = ScenarioRequest(
        9, (Feature(0, 4, "first"), Feature(4, 4, "second")), arrival=num_requests
    )
    return Scenario(config, (*plain, last))


@cache
def long_example() -> LoopCounterexample:
    found = violations(long_scenario(40, 60), ("no-boundary-tolerance",), max_passes=4000)
    return max(
        (example for example in found if example.finding.claim == "boundary-miss-tolerated"),
        key=lambda example: example.finding.pass_index,
    )


def test_a_long_run_is_cut_to_what_matters() -> None:
    """Nobody finds one step among thousands; and what is left out has to be said."""
    example = long_example()
    shown_at = step_of(example.trace, example.finding)
    assert shown_at > 1000
    picture = timeline(example.trace, example.finding)
    rows = steps(picture)
    assert len(rows) <= MOST_STEPS
    assert rows[-1].number == shown_at
    assert [row.number for row in rows[-30:]] == list(range(shown_at - 29, shown_at + 1))
    gaps = [row for row in picture.rows if isinstance(row, Gap)]
    assert sum(gap.num_steps for gap in gaps) + len(rows) == shown_at + 1
    assert picture.num_left_out == len(example.trace.steps) - len(rows)
    # The request concerned arrives among the steps that are shown.
    concerned = example.finding.request
    assert any(row.title == f"request {concerned} arrives" for row in rows)
    assert concerned in {track.request for track in picture.tracks}
    assert picture.num_hidden_requests == 41 - len(picture.tracks)


def test_a_step_can_be_marked_without_a_finding() -> None:
    """Two runs are compared where they part, which breaks no claim by itself."""
    trace = of_switch("shifted-cut")[0].trace
    picture = timeline(trace, None, 1)
    row = picture.rows[picture.contradiction]
    assert isinstance(row, StepRow)
    assert (row.number, picture.lasso) == (1, None)
    unmarked = timeline(trace, None)
    assert all(row.mark is None for row in steps(unmarked))
    assert len(steps(unmarked)) == len(trace.steps)


def test_a_finding_of_two_runs_is_marked_in_its_pass() -> None:
    """What no monitor of one run can see has to be marked all the same."""
    example = of_switch("shifted-cut")[0]
    other = replace(example.finding, claim="runners-agree", mechanism="made up", loop=None)
    row = steps(timeline(example.trace, other))[-1]
    assert row.mark is not None
    assert (row.kind, row.pass_index) == ("pass", other.pass_index)


@pytest.mark.parametrize("distance", [1, 2])
def test_neighbours_are_legal_and_near(distance: int) -> None:
    """An edge shown by a scenario that no engine accepts, or that lies elsewhere, is none."""
    for name in SWITCHES:
        scenario = of_switch(name)[0].trace.scenario
        around = variations(scenario, distance)
        assert around
        assert len({neighbour.what for neighbour in around}) == len(around)
        for neighbour in around:
            neighbour.scenario.validate()
            assert neighbour.scenario != scenario
            assert len(neighbour.scenario.requests) == len(scenario.requests)
            values = [getattr(neighbour.scenario.config, n) for n in vars(scenario.config)]
            old = [getattr(scenario.config, n) for n in vars(scenario.config)]
            changed = [(a, b) for a, b in zip(values, old, strict=True) if a != b]
            if changed:
                assert neighbour.scenario.requests == scenario.requests
                assert [abs(a - b) for a, b in changed] == [distance]


def test_an_entry_without_a_tensor_is_told_when_it_comes_about() -> None:
    """The miss comes later; what has to be changed is where the tensor got lost."""
    seen = 0
    for example, picture in pictures():
        if example.finding.claim != "views-agree" or "the worker has not" not in (
            example.finding.observed
        ):
            continue
        row = picture.rows[picture.contradiction]
        assert isinstance(row, StepRow)
        texts = [reason for reason in row.reasons if "no tensor of it" in reason.text]
        assert texts
        assert all(reason.is_bad for reason in texts)
        seen += 1
    assert seen
