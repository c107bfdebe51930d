"""Reports: complete, harmless whatever an identifier holds, and fit for upstream's repository."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from impl.vllm.launch.source import cache_folder, unpacked
from proofs.drive.origin import Origin
from proofs.report.pages.function_report import (
    FunctionReport,
    write_function_report,
    write_function_reports,
)
from proofs.report.picture.case_text import picture
from proofs.report.ready.reach import reach_of
from proofs.report.text.literals import LINE_LENGTH, printable, python_literal, python_string
from spec.claims.assumptions import ASSUMPTIONS
from spec.claims.texts import FUNCTION_CLAIMS, FunctionClaim
from spec.functions.case_files import load
from spec.functions.cases import (
    AnyCase,
    BookCase,
    BookOperation,
    EncoderOutput,
    FreeCase,
    GatherCase,
    GatherRequest,
    Progress,
    RowRangeCase,
    WindowCase,
)
from spec.functions.findings import Finding, finding
from spec.record.feature import Feature
from tests.support.html_pages import parsed, text_of
from tests.support.written_reports import write_all

VLLM = Origin("vllm 0.23.0", release="0.23.0", package=Path("vllm"))
REFERENCE = Origin("reference")

HOSTILE = 'a"b\'c"""\\ \n`|<script>{{x}}{% if %}\u2028é😀[x](http://x)'
LONG = "h" * 70

WIDE = GatherCase(
    (
        GatherRequest(
            2, 40, 90, (Feature(0, 4, LONG, (True,) * 3 + (False,)), Feature(10, 60, HOSTILE))
        ),
        GatherRequest(95, 1, 90, (Feature(0, 4, "q"),)),
    ),
    (EncoderOutput(LONG, 3), EncoderOutput(HOSTILE, 60)),
    1,
)
MISSING = GatherCase((GatherRequest(0, 4, 8, (Feature(0, 4, HOSTILE),)),), (), 0)
MASKED_FREE = FreeCase(
    (Feature(0, 4, HOSTILE), Feature(4, 4, "Y", (False, True, True, False))),
    8,
    (Progress(4), Progress(8, 2, 1)),
    scheduler_shift=1,
)
ENCODER_DECODER_FREE = FreeCase(
    (Feature(0, 4, "X"),), 4, (Progress(1), Progress(2)), is_encoder_decoder=True
)
FULL_BOOK = BookCase(
    8,
    ((Feature(0, 4, "X"),), (Feature(0, 4, "Y"),), (Feature(0, 4, "Z"),), (Feature(0, 4, "X"),)),
    (
        BookOperation("take", 0),
        BookOperation("take", 1),
        BookOperation("drop", 0),
        BookOperation("drop", 1),
        BookOperation("end_pass"),
        BookOperation("take", 2),
        BookOperation("take", 3),
        BookOperation("end_pass"),
        BookOperation("finish", 2),
        BookOperation("reset"),
    ),
)
LIMITED_BOOK = replace(
    FULL_BOOK,
    operations=(
        BookOperation("take", 0, 0, 3),
        BookOperation("take", 0, 0, 4),
        BookOperation("take", 1, 0, None, 5),
        BookOperation("end_pass"),
    ),
)
ENCODER_DECODER_BOOK = BookCase(
    4,
    ((Feature(0, 4, HOSTILE),),),
    (BookOperation("take"), BookOperation("drop"), BookOperation("drop")),
    is_encoder_decoder=True,
)


def made_up(claim: str, case: AnyCase, part: str, mechanism: str = "made up") -> Finding:
    return finding(
        claim,
        case,
        observed=f"AssertionError: Encoder cache miss for {HOSTILE}.",
        expected=f"rows [{HOSTILE}.1]",
        target=f"{VLLM.target} {part}",
        mechanism=mechanism,
    )


def findings() -> list[Finding]:
    """A finding for every claim, with its witness and with cases that are hard to write down."""
    made: list[Finding] = []
    for claim in FUNCTION_CLAIMS.values():
        match claim.witness:
            case GatherCase() as case if claim.id == "runners-agree":
                made.append(made_up(claim.id, case, "V1 with V2"))
            case GatherCase() as case:
                for part in ("V1", "V2"):
                    made += [made_up(claim.id, c, part) for c in (case, WIDE, MISSING)]
                    made.append(made_up(claim.id, case, part, "merged embeddings differ"))
            case FreeCase() as case:
                cases = (case, MASKED_FREE, ENCODER_DECODER_FREE)
                made += [made_up(claim.id, c, "free") for c in cases]
            case BookCase() as case:
                made += [made_up(claim.id, c, "book") for c in (case, FULL_BOOK, LIMITED_BOOK)]
            case WindowCase() as case:
                made.append(made_up(claim.id, case, "window"))
            case RowRangeCase() as case:
                made.append(made_up(claim.id, case, "row_range"))
    for claim_id in ("slots-conserved", "book-exact", "no-error"):
        limited = replace(ENCODER_DECODER_BOOK, operations=(BookOperation("take", 0, 0, 4, 1),))
        for case in (ENCODER_DECODER_BOOK, limited):
            made.append(made_up(claim_id, case, "encoder_decoder_book"))
        made.append(made_up(claim_id, FULL_BOOK, "book"))
    made += [made_up("slots-conserved", c, "free") for c in (MASKED_FREE, ENCODER_DECODER_FREE)]
    return made


@pytest.fixture(scope="module")
def dossiers(tmp_path_factory: pytest.TempPathFactory) -> list[FunctionReport]:
    folder = tmp_path_factory.mktemp("dossiers")
    return [
        write_function_report(each, folder / str(number), VLLM)
        for number, each in enumerate(findings())
    ]


def test_every_finding_has_a_page_a_test_and_its_case(dossiers: list[FunctionReport]) -> None:
    """A finding whose case is lost cannot be replayed."""
    for each, dossier in zip(findings(), dossiers, strict=True):
        document = load(dossier.case)
        assert (document.case, document.findings) == (each.case, (each,))
        names = {"report.html", "report.md", "case.json", "test_repro.py"}
        assert {entry.name for entry in dossier.page.parent.iterdir()} == names
        assert {path.name for path in dossier.paths} == names


def test_no_identifier_breaks_a_ready_test(dossiers: list[FunctionReport]) -> None:
    """An identifier that ends a string would run as code in somebody else's test suite."""
    for dossier in dossiers:
        assert dossier.test is not None
        text = dossier.test.read_text(encoding="utf-8")
        tree = ast.parse(text)
        assert text.isascii()
        assert text.startswith("# SPDX-License-Identifier: Apache-2.0\n# SPDX-FileCopyrightText: ")
        assert [n.name for n in tree.body if isinstance(n, ast.FunctionDef)][-1].startswith("test_")
        allowed = {"inspect", "re", "sys", "types", "numpy", "pytest", "torch", "vllm"}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] in allowed
            elif isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= allowed


def test_identifiers_reach_the_ready_test_unchanged(tmp_path: Path) -> None:
    """A test with another identifier than the case's would test another case."""
    ready = write_function_report(
        made_up("interior-miss-raises", MISSING, "V1"), tmp_path, VLLM
    ).test
    assert ready is not None
    strings = {
        node.value
        for node in ast.walk(ast.parse(ready.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert HOSTILE in strings


def test_no_identifier_breaks_a_page(dossiers: list[FunctionReport]) -> None:
    """An identifier must not end a table row or a fence, nor start a tag or a link."""
    for dossier in dossiers:
        text = dossier.markdown.read_text(encoding="utf-8")
        assert text.isascii()
        assert "<script>" not in text
        assert "{%" not in text
        assert text.count("```") == 4
        rows = [line for line in text.splitlines() if line.startswith("|")]
        assert len(rows) == 4
        assert all(line.count("|") == 3 for line in rows)


def test_no_identifier_breaks_a_page_for_the_browser(dossiers: list[FunctionReport]) -> None:
    """The same for the page that is opened in a browser: its elements are ours alone."""
    for each, dossier in zip(findings(), dossiers, strict=True):
        page = dossier.page.read_text(encoding="utf-8")
        root = parsed(page)
        assert "<script" not in page
        assert not [c for c in page if not c.isprintable() and c not in "\n\u2068\u2069"]
        tags = [element.tag for element in root.iter()]
        assert tags.count("h1") == tags.count("main") == 1
        assert not {"img", "script", "iframe", "svg"} & set(tags)
        text = text_of(page)
        assert FUNCTION_CLAIMS[each.claim].why in text.replace("vLLM #", "")
        for path in dossier.paths[1:]:
            assert f'href="{path.name}"' in page


def test_a_ready_test_says_whether_defaults_reach_the_fault(dossiers: list[FunctionReport]) -> None:
    """A maintainer asks this first."""
    for each, dossier in zip(findings(), dossiers, strict=True):
        assert dossier.test is not None
        docstring = ast.get_docstring(ast.parse(dossier.test.read_text(encoding="utf-8")))
        assert docstring is not None
        said = " ".join(docstring.split())
        assert f"Reached in default settings: {reach_of(each).answer};" in said
        assert printable(FUNCTION_CLAIMS[each.claim].sentence)[1:] in said
        text = dossier.markdown.read_text(encoding="utf-8")
        assert "Do default settings reach it?" in text
        assert f"In default settings: <b>{reach_of(each).answer}</b>" in dossier.page.read_text()


def test_two_faults_of_one_claim_do_not_overwrite_each_other(tmp_path: Path) -> None:
    """Only the last of them would be reported."""
    first = made_up(
        "rows-exact", FUNCTION_CLAIMS["rows-exact"].witness, "V1", "returned rows differ"
    )
    second = made_up(
        "rows-exact", FUNCTION_CLAIMS["rows-exact"].witness, "V1", "merged embeddings differ"
    )
    written = write_all(write_function_reports([first, second], tmp_path, VLLM), tmp_path, VLLM)
    assert len(set(written)) == 2 * 4 + 1
    assert written[-1] == tmp_path / "index.html"
    index = written[-1].read_text(encoding="utf-8")
    for path in written[:-1]:
        assert path.is_file()
        assert f'href="{path.parent.name}/{path.name}"' in index


def test_a_case_that_breaks_an_assumption_says_so(tmp_path: Path) -> None:
    """Otherwise a case outside the engine's contract would look like a bug inside it."""
    breaking = ASSUMPTIONS["hash-is-content"].on_functions
    assert breaking is not None
    each = made_up("slots-conserved", breaking.case, "book of unlike contents")
    dossier = write_function_report(each, tmp_path, VLLM)
    assert dossier.test is not None
    text = dossier.markdown.read_text()
    assert text.splitlines()[2].startswith("Only without the assumption `hash-is-content` (an ")
    assert "breaks an assumption on purpose (an identifier stands for" in text
    assert "The case breaks on purpose that an identifier stands for" in dossier.test.read_text()
    html = dossier.page.read_text()
    assert "<h1>Only without the assumption hash-is-content: " in html
    assert "breaks an assumption on purpose (an identifier stands for" in html


def test_a_page_names_the_code_and_links_the_numbers(
    dossiers: list[FunctionReport], tmp_path: Path
) -> None:
    """A reviewer of vLLM knows its classes and pull requests, not the names of our parts."""
    part = "encoder_decoder_book"
    made = made_up("slots-conserved", ENCODER_DECODER_BOOK, part)
    dossier = write_function_report(made, tmp_path, VLLM)
    text = dossier.markdown.read_text(encoding="utf-8")
    assert "`EncoderDecoderCacheManager` (vllm 0.23.0 encoder-decoder book)" in text
    assert part not in text.replace(f"conserved_{part}", "")
    assert "[vLLM #57696](https://github.com/vllm-project/vllm/pull/57696), [vLLM #51228]" in text
    assert all("**Found in**: `" in each.markdown.read_text() for each in dossiers)
    html = dossier.page.read_text(encoding="utf-8")
    assert "<code>EncoderDecoderCacheManager</code>" in html
    assert '<a href="https://github.com/vllm-project/vllm/pull/57696">vLLM #57696</a>' in html
    assert all("<dt>found in</dt>" in each.page.read_text() for each in dossiers)


@pytest.mark.parametrize("claim", FUNCTION_CLAIMS.values(), ids=lambda claim: claim.id)
def test_when_a_claim_is_not_expected_is_the_end_of_a_sentence(claim: FunctionClaim) -> None:
    """A page reads: the claim is not expected to hold, and then these words."""
    first, *_ = claim.not_expected.split()
    assert first in {"after", "for", "where", "never"}
    assert first != "never" or claim.not_expected == "never"


def test_the_reference_gets_no_test_for_upstream(tmp_path: Path) -> None:
    """A test of vLLM says nothing about our own implementation."""
    each = finding(
        "row-range-exact",
        FUNCTION_CLAIMS["row-range-exact"].witness,
        observed="rows [0,3)",
        expected="rows [0,0)",
        target="reference row_range",
        mechanism="rows of an empty range",
    )
    dossier = write_function_report(each, tmp_path, REFERENCE)
    assert dossier.test is None
    assert {path.name for path in dossier.paths} == {"report.html", "report.md", "case.json"}
    for page in (dossier.page, dossier.markdown):
        text = page.read_text(encoding="utf-8")
        assert "residency check --target reference" in text
        assert "Differences from an installed release" not in text


def test_the_picture_shows_windows_features_and_rows() -> None:
    """A reviewer reads the case off this picture alone."""
    assert picture(FUNCTION_CLAIMS["boundary-miss-tolerated"].witness).splitlines() == [
        "request 0: 0 tokens computed, 4 scheduled, prefill of 9",
        "position                       0 1 2 3 4 5 6 7",
        "target reads [0,4)             = = = = . . . .",
        "drafter reads [1,5)            . = = = = . . .",
        "A[0,4) resident                # # # # . . . .",
        "B[4,8) not resident, boundary  . . . . # # # #",
        "must read row                    1 2 3 .",
    ]


def test_the_picture_shows_what_a_take_is_held_to() -> None:
    """A refusal that nothing on the picture explains."""
    book, head, *lines = picture(LIMITED_BOOK).splitlines()
    assert book == "book of 8 rows"
    assert head.split() == ["#", "operation", "what", "must", "happen"]
    assert [line.split("  ", 3)[3].strip() for line in lines[:3]] == [
        "request-0  X[0,4), 4 rows, encoder budget 3     refused; free 8, freeable 8",
        "request-0  X[0,4), 4 rows, encoder budget 4     allocated; free 4, freeable 4",
        "request-1  Y[0,4), 4 rows, 5 chosen before      refused; free 4, freeable 4",
    ]


def test_the_picture_of_either_book_says_what_must_happen() -> None:
    """Answers of the oracle without a label read as the target's, and contradict what was seen."""
    case = replace(ENCODER_DECODER_BOOK, requests=((Feature(0, 4, "X"),),))
    head, *lines = picture(case).splitlines()[1:]
    column = head.index("what must happen")
    assert [line[column:] for line in lines] == ["allocated; free 0", "free 4", "free 4"]
    head, *lines = picture(FULL_BOOK).splitlines()[1:]
    column = head.index("what must happen")
    assert [line[column:] for line in lines] == [
        "allocated; free 4, freeable 4",
        "allocated; free 0, freeable 0",
        "free 0, freeable 4",
        "free 0, freeable 8",
        "evicted: none; free 0, freeable 8",
        "allocated; free 0, freeable 4",
        "allocated; free 0, freeable 0",
        "evicted: Y; free 0, freeable 0",
        "free 0, freeable 4",
        "free 8, freeable 8",
    ]


def test_a_long_case_is_drawn_by_runs_of_positions() -> None:
    """A hundred columns could not be read."""
    breaking = ASSUMPTIONS["features-in-prompt"].on_functions
    assert breaking is not None
    assert picture(breaking.case).splitlines()[2:4] == [
        "position                                            0-49 50-148 149 150-159",
        "A[50,150)                                              .      #   #       .",
    ]


@pytest.mark.parametrize("text", [HOSTILE, LONG, "", "'", '"', "\\", "\x00\x7f\ud800", "{{x}}"])
def test_a_string_literal_means_the_string(text: str) -> None:
    """A literal that means another string would test another case."""
    literal = python_string(text)
    assert ast.literal_eval(literal) == text
    assert literal.isascii()
    assert "\n" not in literal


def test_a_literal_means_the_value_and_fits_the_line() -> None:
    """A line too long fails upstream's linter."""
    value = {"features": [("A", 0, 4, [True, False] * 20)], "more": [(1,), (), [], None, {}]}
    text = python_literal(value, before=8)
    assert ast.literal_eval(text) == value
    assert max(map(len, text.splitlines())) <= LINE_LENGTH


@pytest.mark.parametrize("release", ["0.23.0", "0.24.0", "0.33.0"])
def test_ready_tests_pass_the_linter_and_formatter_of_upstream(
    release: str, dossiers: list[FunctionReport], tmp_path: Path
) -> None:
    """A file that fails upstream's own checks cannot be proposed there."""
    source = unpacked(cache_folder(), release)
    if source is None or source.lint_settings is None:
        pytest.skip(f"NOT CHECKED: vllm {release} is not in the cache; run `make vllm`")
    (tmp_path / "pyproject.toml").write_bytes(source.lint_settings.read_bytes())
    (tmp_path / "vllm").symlink_to(source.package)
    folder = tmp_path / "tests" / "v1"
    folder.mkdir(parents=True)
    for number, dossier in enumerate(dossiers):
        assert dossier.test is not None
        (folder / f"test_{number}.py").write_bytes(dossier.test.read_bytes())
    for arguments in (["check"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--no-cache", str(folder)]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
