"""Text for pull requests: no name breaks a table, a fence or the page, or becomes a mention."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from syrupy.assertion import SnapshotAssertion

from impl.targets.runs import ReferenceLoop
from proofs.describe.visible import visible
from proofs.drive.origin import Origin
from proofs.recorded import SCENARIOS
from proofs.report.near.comparison import compare
from proofs.report.pages.account import Account, account_of
from proofs.report.pages.comparison import comparison_lines, comparison_markdown
from proofs.report.pages.reproduce import Links
from proofs.report.pages.run_report import run_markdown
from proofs.report.picture.text_timeline import LEGEND, text_timeline
from proofs.report.story.timeline_build import timeline
from proofs.report.text.markup import (
    COMMENT_LIMIT,
    NO_TEXT,
    code_span,
    fenced,
    fitted,
    prose,
    table,
)
from proofs.run.record import Recording, record
from proofs.search.runs.results import LoopCounterexample
from spec.monitor.monitor import LoopMonitor
from spec.record.config import EngineConfig
from spec.record.document import load
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest
from tests.support.hostile_names import NAMES, names
from tests.support.report_runs import account_of_switch

FAULTS = ("deferred-free-margin", "shifted-cut")
SCENARIO = SCENARIOS / "deferred-free-margin.json"
STUCK = load(SCENARIO).scenario


@cache
def parser() -> MarkdownIt:
    """CommonMark with tables and strikethrough, as GitHub has them."""
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def parsed(text: str) -> list[Token]:
    """All tokens, those within a line too."""
    tokens = []
    for token in parser().parse(text):
        tokens.append(token)
        tokens += token.children or []
    return tokens


def of_type(text: str, kind: str) -> list[Token]:
    """Tokens of one kind."""
    return [token for token in parsed(text) if token.type == kind]


MARKUP = ("html_inline", "html_block", "link_open", "image", "heading_open", "em_open", "s_open")
LINKED = re.compile(
    r"(?<![\w`])@\w|#\d|\bGH-\d|https?:|www\.|:\w+:|\b[0-9a-f]{7,40}\b|\$.*\$", re.IGNORECASE
)
"""What GitHub makes a mention, a link, a picture or a formula of, where it stands as text."""


PUBLIC = re.compile(r"https://github\.com/vllm-project/(vllm|vllm-ascend)/pull/(\d{5})")
"""Where a number of a public pull request leads."""


def without_public_links(tokens: list[Token]) -> list[Token]:
    """The tokens without links to public pull requests, each of which must say whose it is."""
    kept: list[Token] = []
    within = False
    for token in tokens:
        if token.type == "link_open" and (found := PUBLIC.fullmatch(str(token.attrs["href"]))):
            within = True
            name = {"vllm": "vLLM"}.get(found[1], found[1])
            expected = f"{name} #{found[2]}"
        elif within and token.type == "text":
            assert token.content == expected
        elif within and token.type == "link_close":
            within = False
        else:
            kept.append(token)
    return kept


def require_harmless(text: str, *expected: str) -> None:
    """Nothing but code spans, bold, public numbers and what is named may come of a text."""
    tokens = without_public_links(parsed(text))
    assert [t.type for t in tokens if t.type in MARKUP and t.type not in expected] == []
    shown = " ".join(token.content for token in tokens if token.type == "text")
    assert LINKED.search(shown) is None, shown


# Escaping


@given(names)
def test_a_code_span_holds_exactly_the_visible_name(name: str) -> None:
    """A backtick would end the span, and the rest of the name be markup."""
    span = code_span(name)
    (code,) = of_type(span, "code_inline")
    assert code.content == (visible(name, None) or NO_TEXT)
    require_harmless(span)


@given(names)
def test_what_cannot_be_seen_is_an_escape(name: str) -> None:
    """A mark of direction would turn the rest of the line, a line end break it."""
    shown = visible(name, None)
    assert shown.isprintable()
    assert not re.search("[\u0590-\u08ff\u200b-\u200f\u202a-\u202e\u2066-\u2069]", shown)
    assert visible("plain-name_1.0 (é, 漢)") == "plain-name_1.0 (é, 漢)"


def test_two_names_never_look_the_same() -> None:
    """A reader could not tell which item is meant."""
    shown = [visible(name, None) for name in NAMES]
    assert len(set(shown)) == len(NAMES)
    assert visible("x" * 10_000).endswith("... (10000 characters)")
    assert len(visible("x" * 10_000)) < 100


@given(st.lists(names, min_size=1, max_size=4))
def test_prose_keeps_its_words_and_makes_no_markup(words: list[str]) -> None:
    """A name in a sentence would be a mention, a link or a heading."""
    sentence = f"request 0 reads {' and '.join(words)}, and 4 <= 3 is false"
    require_harmless(prose(sentence))
    plain = "the reference stays, because 8 + 1 <= 8 is false (0 of 4 rows); A[0,4) is held"
    assert prose(plain) == plain


@given(st.lists(st.tuples(names, names), min_size=1, max_size=5))
def test_a_cell_stays_a_cell(rows: list[tuple[str, str]]) -> None:
    """A pipe in a name would push all that follows into other columns."""
    cells = [(code_span(a, in_table=True), prose(b, in_table=True)) for a, b in rows]
    text = table(("one", "two"), cells)
    assert len(of_type(text, "tr_open")) == len(rows) + 1
    assert len(of_type(text, "td_open")) == 2 * len(rows)
    require_harmless(text)
    shown = [
        next(iter(t.content for t in cell.children or [] if t.type == "code_inline"), "")
        for cell in [t for t in parser().parse(text) if t.type == "inline"][2::2]
    ]
    assert shown == [visible(a, None) or NO_TEXT for a, _ in rows]


@given(st.lists(names, max_size=6))
def test_a_fence_is_closed_by_nothing_but_its_end(lines: list[str]) -> None:
    """A name of backticks would end the block, and the picture become text."""
    text = fenced([visible(line, None) for line in lines]) + "\n\nafter"
    (block,) = of_type(text, "fence")
    assert block.content == "\n".join(visible(line, None) for line in lines) + "\n"
    assert [t.content for t in parsed(text) if t.type == "text"] == ["after"]


@given(st.lists(st.text(max_size=60), min_size=1, max_size=8), st.integers(30, 300))
def test_what_is_cut_says_so_and_fits(sections: list[str], limit: int) -> None:
    """A comment above the limit is refused by the site, and a cut one would look whole."""
    text = fitted(sections, limit, "more elsewhere")
    whole = "\n\n".join(sections) + "\n"
    assert len(text.encode()) <= limit
    assert text == whole or text.rstrip("\n").endswith("more elsewhere")
    assert (text == whole) or len(whole.encode()) > limit


# The report


def recorded(scenario: Scenario, faults: tuple[str, ...] = FAULTS) -> Recording:
    """A run with its findings."""
    monitor = LoopMonitor(scenario, "V1")
    return record(ReferenceLoop(faults), scenario, "V1", monitor=monitor)


def account(scenario: Scenario, faults: tuple[str, ...] = FAULTS) -> Account:
    """All that is told of the first finding, without running what lies near."""
    run = recorded(scenario, faults)
    example = LoopCounterexample(run.findings[0], run.trace, ("V1", "V2"))
    return account_of(example, Origin(run.trace.target, faults=faults, seed=0))


def picture(scenario: Scenario) -> list[str]:
    """The picture of the first finding, in text."""
    run = recorded(scenario)
    return text_timeline(timeline(run.trace, run.findings[0]))


def renamed(scenario: Scenario, *identifiers: str) -> Scenario:
    """The same with other identifiers, in order."""
    given_names = iter(identifiers)
    requests = tuple(
        replace(
            request,
            features=tuple(replace(f, identifier=next(given_names)) for f in request.features),
        )
        for request in scenario.requests
    )
    return replace(scenario, requests=requests)


def test_the_report_is_as_it_was(snapshot: SnapshotAssertion) -> None:
    """The text of a report would change unseen."""
    assert run_markdown(account(STUCK), Links()) == snapshot


def test_items_of_an_encoder_decoder_model_lie_in_no_prompt() -> None:
    """A prompt of 2 tokens that holds [0,4), and an update that goes by the name of its pass."""
    report = run_markdown(account_of_switch("encoder-decoder-credit", "slots-conserved"), Links())
    lines = report.splitlines()
    assert any("of text, and its encoder takes A[0," in line for line in lines)
    assert any(line.startswith("  encoder ") for line in lines)
    assert any(line.startswith("encoder  a letter takes a row") for line in lines)
    (told,) = [line for line in lines if line.startswith("**The contradiction**")]
    assert told.startswith("**The contradiction**, in update of pass ")


@pytest.mark.parametrize("index", range(0, len(NAMES) - 1, 2))
def test_no_name_breaks_a_report(index: int) -> None:
    """One odd file name would make the whole comment unreadable, or call people."""
    report = run_markdown(account(renamed(STUCK, *NAMES[index : index + 2])), Links())
    assert len(report) <= COMMENT_LIMIT
    require_harmless(report, "heading_open")
    assert len(of_type(report, "heading_open")) == 1
    picture, shell = of_type(report, "fence")
    assert "step  " in picture.content
    assert "residency replay scenario.json" in shell.content
    rows = parser().parse(report)
    widths, cells = set(), 0
    for token in rows:
        if token.type in ("th_open", "td_open"):
            cells += 1
        elif token.type == "tr_close":
            widths.add(cells)
            cells = 0
    assert widths <= {2, 3}


def test_a_hostile_target_breaks_no_report() -> None:
    """A checkout's folder is named by whoever made it."""
    whole = account(STUCK)
    for name in NAMES:
        trace = replace(whole.example.trace, target=f"vllm at /{name}")
        origin = Origin(trace.target, source=Path("/x"), package=Path("/x/vllm"))
        example = replace(whole.example, trace=trace)
        report = run_markdown(replace(whole, example=example, origin=origin), Links())
        require_harmless(report, "heading_open")
        assert len(of_type(report, "fence")) == 2


def many_items(number: int) -> Scenario:
    """A stuck run with many items under long names before it."""
    length = 3 * number + 9
    features = [Feature(3 * i, 2, f"{i}-" + "n" * 10_000) for i in range(number)]
    features += [Feature(3 * number, 4, "A"), Feature(3 * number + 5, 4, "B")]
    config = EngineConfig(
        8, 8, 4, length + 9, scheduler_lookahead=1, gather_lookahead=1, num_speculative_tokens=1
    )
    return Scenario(config, (ScenarioRequest(length, tuple(features)),))


def test_a_long_run_fits_a_comment() -> None:
    """The site would refuse it."""
    report = run_markdown(account(many_items(60)), Links())
    assert len(report.encode()) <= COMMENT_LIMIT
    assert "left out" in report
    require_harmless(report, "heading_open")
    (picture, _) = of_type(report, "fence")
    assert max(map(len, picture.content.splitlines())) < 400


# The picture in text


def test_the_picture_is_in_fixed_columns(snapshot: SnapshotAssertion) -> None:
    """What a reader sees first would change unseen."""
    assert "\n".join(picture(STUCK)) == snapshot


@given(st.tuples(names, names).filter(lambda pair: pair[0] != pair[1]))
def test_no_name_moves_a_column(pair: tuple[str, str]) -> None:
    """A long or broad name would push the columns apart."""
    lines, plain = picture(renamed(STUCK, *pair)), picture(STUCK)
    width = plain[2].index("worker") + len("worker") if "worker" in plain[2] else 50
    steps = plain.index("")
    assert lines.index("") == steps
    for line, other in zip(lines[:steps], plain[:steps], strict=True):
        assert line[:width] == other[:width]
    assert all(line.isprintable() for line in lines)
    assert tuple(lines[steps + 1 : steps + 1 + len(LEGEND)]) == LEGEND


def test_every_sign_has_its_meaning() -> None:
    """A reader could not tell what is held, read or refused."""
    lines = picture(STUCK)
    text = "\n".join(lines[: lines.index("")])
    legend = " ".join(LEGEND)
    for sign in set(re.sub(r"[A-Za-z0-9 /:;,()<>=\n]", "", text)) - {"|", "+", "-", "."}:
        assert sign in legend, sign
    place = next(index for index, line in enumerate(lines) if "<==" in line)
    stuck, marks = lines[place : place + 2]
    assert stuck.startswith("|")
    # The marks stand below the signs, which say what is so there.
    start = marks.index("!")
    assert marks[start:] == "!!!!"
    assert stuck[start : start + 4] == "????"


# Two runs


def test_a_comparison_is_as_it_was(snapshot: SnapshotAssertion) -> None:
    """What a change fixed would be told otherwise, unseen."""
    comparison = compare(recorded(STUCK).trace, recorded(STUCK, ()).trace)
    assert comparison_markdown(comparison) == snapshot
    assert "\n".join(comparison_lines(comparison)) == snapshot


@pytest.mark.parametrize("index", range(0, len(NAMES) - 1, 2))
def test_no_name_breaks_a_comparison(index: int) -> None:
    """A table of two runs would fall apart."""
    scenario = renamed(STUCK, *NAMES[index : index + 2])
    comparison = compare(recorded(scenario).trace, recorded(scenario, ()).trace)
    text = comparison_markdown(comparison)
    require_harmless(text, "heading_open")
    assert len(text.encode()) <= COMMENT_LIMIT
    assert all(line.isprintable() for line in comparison_lines(comparison))
    assert "here they part" in text


def test_many_requests_stay_readable() -> None:
    """Twelve pictures side by side would be broader than any screen."""
    config = replace(STUCK.config, num_kv_blocks=900, max_num_seqs=12)
    more = tuple(ScenarioRequest(40, (Feature(3, 4, f"item-{n}"),)) for n in range(11))
    lines = picture(Scenario(config, (*STUCK.requests, *more)))
    assert max(map(len, lines)) < 500
    (place,) = (index for index, line in enumerate(lines) if "<==" in line)
    assert "!" not in lines[place]
    assert set(lines[place + 1]) == {"|", " ", "!"}
