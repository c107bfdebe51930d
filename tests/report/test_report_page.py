"""The pages about violations: readable, well-formed, and proof against every name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from impl.faults.scenarios import BOUNDARY_MISSING
from proofs.drive.origin import Origin
from proofs.report.pages.account import Account, account_of
from proofs.report.pages.index import index_page, row_of
from proofs.report.pages.reproduce import Links
from proofs.report.pages.run_report import run_markdown, run_page
from proofs.report.story.focus import MOST_STEPS
from proofs.report.text.html import CONTENT_POLICY, html_templates
from proofs.report.text.plain import harmless, isolated, name, shortened
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest
from tests.report.test_report_timeline import long_example
from tests.support.html_pages import drawings, parsed, skeleton, text_of
from tests.support.report_runs import SWITCHES, account_of_switch, drawn, of_switch, violations

MISS = ("no-boundary-tolerance", "boundary-miss-tolerated")
STUCK = ("deferred-free-margin", "no-stall")
DRIFT = ("encoder-decoder-credit", "slots-conserved")
THREE = (MISS, STUCK, DRIFT)

HOSTILE = (
    "</title></svg><script>alert(1)</script>",
    "\"'`><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "two\nlines\r\nand\ttabs",
    "\u202egnp.exe\u202c",
    "\u2067right to left \u05d0\u05d1\u05d2",
    "\x00\x01\x1b[31m\x7f\x85",
    "\ufffe\uffff\U0001fffe",
    "]]><!-- -- --!>",
    "&amp;&#x0;&lt;",
    "\u200b\u200d\ufeff",
    "ﷺ" * 50,
    "A" * 10_000,
    "",
    " ",
)


def page_of(account: Account) -> str:
    return run_page(account, Links())


def named(first: str, second: str) -> Account:
    """The boundary miss, with other names for its two items."""
    (request,) = BOUNDARY_MISSING.requests
    one, two = request.features
    features = (replace(one, identifier=first), replace(two, identifier=second))
    scenario = replace(BOUNDARY_MISSING, requests=(replace(request, features=features),))
    (example,) = violations(scenario, ("no-boundary-tolerance",))
    return account_of(example, Origin(example.trace.target, faults=("no-boundary-tolerance",)))


@pytest.fixture(scope="module")
def plain_page() -> str:
    return page_of(named("picture one", "picture two"))


def test_every_violation_has_a_page_without_errors() -> None:
    """A page that a browser has to mend may look otherwise in the next browser."""
    for switch in SWITCHES:
        for example in of_switch(switch):
            page = page_of(account_of_switch(switch, example.finding.claim))
            parsed(page)
            assert len(drawings(page)) >= 2
            for part in ("Why", "What decides it", "Reproduce", "Not shown"):
                assert f">{part}<" in page
            assert example.finding.fingerprint in page


def test_drawn_violations_have_a_page_too() -> None:
    """What a search finds is not what somebody made up for the page."""
    claims = set()
    for example in drawn(60):
        account = account_of(example, Origin(example.trace.target))
        page = page_of(account)
        parsed(page)
        assert len(drawings(page)) >= 2
        claims.add(account.claim.id)
    assert len(claims) >= 6


@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_no_name_changes_a_page(hostile: str, plain_page: str) -> None:
    """A hash comes from a client: it must not write into the page."""
    _check_names(hostile, "other" if hostile != "other" else "another", plain_page)


@settings(max_examples=60)
@given(first=st.text(min_size=1, max_size=40), second=st.text(min_size=1, max_size=40))
def test_no_drawn_name_changes_a_page(first: str, second: str) -> None:
    """The same for names that nobody thought of."""
    if first == second:
        return
    _check_names(first, second, None)


def _check_names(first: str, second: str, plain_page: str | None) -> None:
    page = page_of(named(first, second))
    root = parsed(page)
    assert len(page) < 100_000
    allowed = set("\n\u2068\u2069")
    assert not [c for c in page if not c.isprintable() and c not in allowed]
    for drawing in drawings(page):
        assert not [
            c for c in "".join(drawing.itertext()) if not c.isprintable() and c not in allowed
        ]
    assert "<script" not in page
    assert "49{%" not in page
    if plain_page is not None:
        ours, theirs = skeleton(root), skeleton(parsed(plain_page))
        short = {"A", "B"}
        # A name that is its own letter needs no second name in the legend.
        if not {first, second} <= short:
            assert ours == theirs


def test_names_are_made_harmless() -> None:
    """What is shown must neither turn a line around nor hide that two names differ."""
    for hostile in HOSTILE:
        made = name(hostile)
        assert len(made) <= 42
        assert not [c for c in made if not c.isprintable() and c not in "\u2068\u2069"]
    assert name("plain-hash_1") == "plain-hash_1"
    assert harmless("a\u202eb") == "a\ufffdb"
    assert harmless("one\ntwo") == "one two"
    assert isolated("abc") == "abc"
    assert isolated("\u05d0") == "\u2068\u05d0\u2069"
    cut = shortened("a" * 50 + "z" * 50)
    assert (len(cut), cut[0], cut[-1], "…" in cut) == (40, "a", "z", True)
    assert shortened("x" * 40) == "x" * 40


@given(st.text(max_size=200), st.integers(3, 60))
def test_text_is_cut_to_its_length(text: str, longest: int) -> None:
    """Ten thousand characters would push everything else away."""
    cut = shortened(text, longest)
    assert len(cut) <= longest
    assert cut == text or (cut[0] == text[0] and "…" in cut)
    assert harmless(harmless(text)) == harmless(text)


@pytest.mark.parametrize(("switch", "claim"), THREE)
def test_a_report_says_what_it_said(switch: str, claim: str, snapshot: SnapshotAssertion) -> None:
    """Every word of a report is read by somebody; a change has to be meant."""
    text = text_of(page_of(account_of_switch(switch, claim)))
    assert _without_versions(text) == snapshot


def test_the_index_says_what_it_said(snapshot: SnapshotAssertion) -> None:
    """The page over all violations names each, and links its files."""
    accounts = [account_of_switch(*fault) for fault in THREE]
    folders = [f"{account.claim.id}-{account.example.finding.fingerprint}" for account in accounts]
    files = [Links().all[1:] for _ in accounts]
    rows = [row_of(*parts) for parts in zip(accounts, folders, files, strict=True)]
    page = index_page(rows, Origin("reference", seed=3))
    for folder in folders:
        assert f'href="{folder}/report.html"' in page
        assert f'href="{folder}/test_repro.py"' in page
    assert _without_versions(text_of(page)) == snapshot
    empty = text_of(index_page([], Origin("reference")))
    assert "No claim was found violated." in empty


def _without_versions(text: str) -> str:
    return re.sub(r"residency \S+, Python \S+, torch \S+\.", "(versions)", text)


def test_a_page_is_one_file() -> None:
    """A report is read from a mail, years later, without a network."""
    pages = [page_of(account_of_switch(*fault)) for fault in THREE]
    for page in (*pages, index_page([], Origin("reference"))):
        root = parsed(page)
        for element in root.iter():
            assert element.tag not in ("script", "img", "iframe", "object", "embed", "base")
            assert not [key for key in element.attrib if key.startswith("on") or key == "style"]
            if element.tag == "link":
                assert element.get("href") == "data:,"
            assert element.get("src") is None
        assert "@import" not in page
        assert "url(http" not in page


def test_a_page_may_load_nothing_and_run_no_script() -> None:
    """Wrong: a name that slips through the escaping runs a script or calls a server."""
    policy = f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}">'
    page = page_of(account_of_switch(*MISS))
    assert page.index(policy) < page.index("<title>") < page.index("<style>")
    assert page.count("Content-Security-Policy") == 1
    allowed = dict(part.split(" ", 1) for part in CONTENT_POLICY.split("; "))
    assert allowed["default-src"] == "'none'"
    assert {name for name, source in allowed.items() if source != "'none'"} == {
        "style-src",
        "img-src",
    }
    environment = html_templates()
    for template in environment.list_templates(["jinja"]):
        if template.endswith(".html.jinja") and template != "base.html.jinja":
            assert environment.loader is not None
            source, *_ = environment.loader.get_source(environment, template)
            assert source.startswith('{% extends "base.html.jinja" %}'), template


def test_a_page_can_be_read_with_the_keyboard_and_by_a_reader() -> None:
    """Landmarks, headings in order, a way past what comes first, and scrolling without a mouse."""
    for fault in THREE:
        root = parsed(page_of(account_of_switch(*fault)))
        assert root.get("lang") == "en"
        tags = [element.tag for element in root.iter()]
        assert tags.count("main") == tags.count("h1") == tags.count("title") == 1
        levels = [int(tag[1]) for tag in tags if re.fullmatch(r"h[1-6]", str(tag))]
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))
        ids = [element.get("id") for element in root.iter() if element.get("id")]
        assert len(set(ids)) == len(ids)
        first = next(element for element in root.iter("a"))
        assert first.get("href") == "#content"
        assert "content" in ids
        for element in root.iter():
            labels = (element.get("aria-labelledby") or "").split()
            assert set(labels) <= set(ids)
            if "scroll" in (element.get("class") or "").split():
                assert element.get("tabindex") == "0"
                assert element.get("aria-label")
        for table in root.iter("table"):
            assert [cell.get("scope") for cell in table.iter("th")].count(None) == 0


def test_a_page_tells_the_run_in_words_too() -> None:
    """The table is the picture for whoever does not see it: each step, each reason."""
    account = account_of_switch(*STUCK)
    text = text_of(page_of(account))
    for row in account.timeline.rows:
        for reason in getattr(row, "reasons", ()):
            assert reason.text[1:] in text
            assert not reason.because or f", because {reason.because}" in text


_COLOUR = re.compile(r"--([\w-]+):#([0-9a-f]{3,6})\b")


def _luminance(colour: str) -> float:
    full = colour if len(colour) == 6 else "".join(2 * digit for digit in colour)
    parts = [int(full[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The ratio that accessibility guidelines ask about."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_keeps_its_contrast_in_light_and_in_dark() -> None:
    """Text below 4.5 to 1 is not read by many, and a shape below 3 to 1 not seen."""
    style = str(html_templates().globals["style"])
    light_rule, dark_rule = (
        rule for rule in re.findall(r":root\{[^}]*\}", style) if "--bg" in rule
    )
    light = dict(_COLOUR.findall(light_rule))
    dark = {**light, **dict(_COLOUR.findall(dark_rule))}
    assert light != dark
    for scheme in (light, dark):
        for ground in ("bg", "card", "bad-wash"):
            for text in ("fg", "mut", "bad", "ok", "c0"):
                assert contrast(scheme[text], scheme[ground]) >= 4.5, (text, ground)
            for number in range(8):
                assert contrast(scheme[f"c{number}"], scheme[ground]) >= 3
        assert contrast(scheme["bg"], scheme["ink"]) >= 4.5
        for number in range(8):
            assert contrast(scheme["on"], scheme[f"c{number}"]) >= 4.5, number
    assert contrast("000", "fff") == pytest.approx(21)


def crowded() -> Scenario:
    """Twelve requests with forty items between them, some shared and some masked."""
    requests = []
    for index in range(12):
        features, position = [], index % 3
        for item in range(4 if index < 4 else 3):
            length = 1 + (index * 5 + item * 3) % 4
            mask = (False, *(True,) * (length - 1)) if item == 1 and length > 1 else None
            rows = length - (mask is not None)
            features.append(Feature(position, length, f"sha256:{(index + item) % 9}:{rows}", mask))
            position += length + item % 2
        requests.append(
            ScenarioRequest(position + 3, tuple(features), arrival=index // 2, max_tokens=10)
        )
    config = EngineConfig(
        20, 12, 12, 200, scheduler_lookahead=1, gather_lookahead=1, num_speculative_tokens=1
    )
    return Scenario(config, tuple(requests))


def test_a_crowded_run_is_shown_whole_in_a_page_of_less_than_a_megabyte() -> None:
    """A page that is too large is not opened, and one that leaves something out has to say so."""
    found = violations(crowded(), ("no-boundary-tolerance", "boundary-never-encoded"))
    example = max(found, key=lambda example: example.finding.pass_index)
    assert 60 <= len(example.trace.steps) <= MOST_STEPS
    # As if it showed in the last step, so that all of them are to be drawn.
    finding = replace(example.finding, claim="runners-agree", pass_index=10**6)
    whole = replace(example, finding=finding)
    account = account_of(whole, Origin(example.trace.target))
    assert sum(len(track.bars) for track in account.timeline.tracks) == 40
    assert len(account.timeline.rows) >= 60
    assert account.timeline.num_left_out <= 1
    page = page_of(account)
    parsed(page)
    assert len(page.encode()) < 1_000_000
    for letter in (entry.letter for entry in account.timeline.entries):
        assert f">{letter}<" in page


def test_a_long_run_says_on_its_page_that_it_was_cut() -> None:
    """Thousands of steps are nobody's reading, and silence about them would be a lie."""
    example = long_example()
    page = page_of(account_of(example, Origin(example.trace.target)))
    text = text_of(page)
    parsed(page)
    assert len(page.encode()) < 1_000_000
    assert f"The trace has {len(example.trace.steps):,} steps." in text
    assert "are left out" in text
    assert "steps left out" in text


def test_a_picture_is_the_same_every_time() -> None:
    """A report that changes by itself cannot be compared."""
    make: Callable[[], str] = lambda: page_of(named("one name", "other name"))  # noqa: E731
    assert make() == make()


def test_public_numbers_are_links_to_where_they_belong() -> None:
    """A number of a fork that points into another project accuses the wrong change."""
    page = page_of(account_of_switch(*STUCK))
    assert '"https://github.com/vllm-project/vllm/pull/46315"' in page
    assert '"https://github.com/vllm-project/vllm-ascend/pull/17195"' in page
    assert '"https://github.com/vllm-project/vllm/pull/17195"' not in page


@pytest.mark.parametrize("name", SWITCHES)
def test_no_public_number_stands_alone(name: str) -> None:
    """A reader would not know whose pull request it is, or take it for a number of tokens."""
    (first, *_) = of_switch(name)
    account = account_of_switch(name, first.finding.claim)
    for text in (page_of(account), run_markdown(account, Links())):
        # Of a link the address, of the page the style, and the drawings of both.
        left_out = r"<style.*?</style>|<svg.*?</svg>|```text.*?```|https://\S+"
        text = re.sub(left_out, "", text, flags=re.DOTALL)
        assert re.findall(r"(?<![\w.#])\d{5}(?![\w.])", text) == []
