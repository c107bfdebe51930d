"""The README and the pages of docs/ say what the code does: generated parts, commands, names."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

from impl.faults.switches import BY_NAME as FAULTS
from proofs.commands.main import main
from proofs.recorded import FOUND
from spec.claims.texts import ALL_TEXTS, FUNCTION_CLAIMS
from tests.recorders.record_docs import DOCS, PARTS, PICTURE, README, ROOT, drawing, pages, render

TEXTS = {page: page.read_text(encoding="utf-8") for page in (*pages(), ROOT / "CONTRIBUTING.md")}
ALL = "\n".join(TEXTS.values())
WRITE = "run: python -m tests.recorders.record_docs"
ROOMS = "spec|impl|proofs|tests"
BY_HAND = {"architecture.md", "security.md", "usage.md"}
"""Pages without a generated part."""


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_generated_parts_are_up_to_date(page: Path) -> None:
    """Wrong: a table that was edited by hand, or left behind by the code, is a false statement."""
    assert render(TEXTS[page]) == TEXTS[page], WRITE


def test_picture_is_what_the_report_draws() -> None:
    """Wrong: a picture of another report than today's promises what nobody gets."""
    assert PICTURE.read_text(encoding="utf-8") == drawing(), WRITE
    assert PICTURE.relative_to(ROOT).as_posix() in TEXTS[README]


def test_every_generated_part_is_used_once() -> None:
    """Wrong: a part that no page shows is kept up here, or two pages say the same."""
    assert sorted(re.findall(r"<!-- generated: ([a-z-]+) -->", ALL)) == sorted(PARTS)


def test_every_other_page_has_a_generated_part() -> None:
    """Wrong: a page of results is written by hand, and nothing holds it true."""
    without = {path.name for path in DOCS.glob("*.md") if "<!-- generated:" not in TEXTS[path]}
    assert without == BY_HAND


def test_a_changed_part_is_noticed() -> None:
    """Wrong: the check cannot fail."""
    text = TEXTS[DOCS / "claims.md"]
    changed = text.replace("`boundary-miss-tolerated`", "`boundary-miss-ignored`", 1)
    assert changed != text
    assert render(changed) != changed


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Wrong: a reader follows a link to a page or a heading that is not there."""
    for target in re.findall(r"\]\(([^)\s]+)\)", TEXTS[page]):
        if target.startswith("https://"):
            continue
        path, _, heading = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.is_file(), target
        assert not heading or heading in _headings(linked), target


def _headings(page: Path) -> set[str]:
    """What a page's headings are called in links to them."""
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    titles = [b.content for a, b in pairwise(tokens) if a.type == "heading_open"]
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_named_files_exist(page: Path) -> None:
    """Wrong: a page sends its reader to a file or folder that was moved."""
    named = re.findall(rf"(?:{ROOMS})/[\w/.-]*\w/?|\.github/[\w/.-]+|\.ci/run", TEXTS[page])
    missing = {name for name in named if not (ROOT / name).exists()}
    assert not {name for name in missing if "NAME" not in name}


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_named_modules_exist(page: Path) -> None:
    """Wrong: a command that a page shows cannot be started."""
    for module in re.findall(r"python -m ([\w.]+)", TEXTS[page]):
        if module.split(".")[0] in ROOMS.split("|"):
            path = ROOT / Path(*module.split("."))
            assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), module


def test_findings_of_the_readme_exist() -> None:
    """Wrong: the README promises a finding that is recorded under no such name."""
    section = re.search(r"## What was found\n(.*?)\n## ", TEXTS[README], re.DOTALL)
    assert section is not None
    found = {fault["name"] for fault in json.loads((FOUND / "index.json").read_text())["faults"]}
    named = re.findall(r"^- `([a-z-]+)`", section[1], re.MULTILINE)
    assert len(named) == 5
    assert set(named) <= found
    assert "[fifteen findings]" in section[1]
    assert len(found) == 15


def test_assumptions_and_claims_that_pages_name_exist() -> None:
    """Wrong: a reader looks for a claim that has another name."""
    for name in re.findall(r"residency claims ([a-z-]+)", ALL):
        assert name in ALL_TEXTS


def test_the_readme_says_whose_rights_the_code_has() -> None:
    """Wrong: somebody checks a stranger's code, and takes green for safety."""
    sentence = "is run with your rights, and green is no defence against a hostile author"
    for page in (README, DOCS / "security.md"):
        assert sentence in re.sub(r"\s+", " ", TEXTS[page])


@pytest.mark.parametrize(
    "command",
    [
        "ablate",
        "bench",
        "check",
        "claims",
        "explore",
        "lint-config",
        "prove",
        "replay",
        "report",
        "sweep",
        "vllm",
    ],
)
def test_commands_exist_and_explain_themselves(command: str) -> None:
    """Wrong: a command that no page shows, or that is not there."""
    assert f"residency {command}" in ALL
    result = CliRunner().invoke(main, [command, "--help"])
    assert result.exit_code == 0
    assert result.output


def test_options_exist() -> None:
    """Wrong: a command line of a page is refused."""
    lines = re.findall(r"^(?:\$ )?residency ([a-z-]+)(.*)$", ALL, re.MULTILINE)
    assert lines
    for command, rest in lines:
        arguments = rest.partition("#")[0]
        text = CliRunner().invoke(main, [command, "--help"]).output
        for option in re.findall(r"--[a-z][a-z-]*|(?<= )-o\b", arguments):
            assert option in text, (command, option)


def test_make_targets_exist() -> None:
    """Wrong: the first commands that a new user types are not there."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:^|`)make ([a-z]+)", ALL, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_faults_in_the_claims_exist() -> None:
    """Wrong: the table of claims names switches that a reader cannot throw."""
    for claim in FUNCTION_CLAIMS.values():
        assert set(claim.faults) <= set(FAULTS)


def test_no_file_strays_from_the_layout() -> None:
    """Wrong: the top level is no longer small enough to be read."""
    allowed = {
        "spec", "impl", "proofs", "tests", "docs", "README.md", "CONTRIBUTING.md", "LICENSE",
        "pyproject.toml", "constraints.txt", "Makefile", ".ci", ".gitignore", ".git", ".github",
    }  # fmt: skip
    ignored = {line.strip("/\n") for line in (ROOT / ".gitignore").open(encoding="utf-8")}
    found = {path.name for path in Path(ROOT).iterdir()}
    assert {name for name in found - allowed - ignored if not name.endswith(".egg-info")} == set()
