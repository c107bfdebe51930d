"""The README says what the code does: its generated parts, its commands, its names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from impl.faults.switches import BY_NAME as FAULTS
from proofs.commands.main import main
from proofs.ledger.readme import PARTS, README, render
from proofs.ledger.readme_picture import PICTURE, drawing
from spec.claims.on_functions import CLAIMS

TEXT = README.read_text(encoding="utf-8")
ROOT = README.parent


def test_generated_parts_are_up_to_date() -> None:
    """A table that is edited by hand, or left behind by the code, is a false statement."""
    assert render(TEXT) == TEXT, "run: python -m proofs.ledger.readme"


def test_picture_is_what_the_report_draws() -> None:
    """A picture of another report than today's would promise what nobody gets."""
    assert PICTURE.read_text(encoding="utf-8") == drawing(), "run: python -m proofs.ledger.readme"
    assert PICTURE.relative_to(ROOT).as_posix() in TEXT


def test_every_generated_part_is_used() -> None:
    """A part that the README dropped would still be kept up here."""
    assert set(re.findall(r"<!-- generated: ([a-z-]+) -->", TEXT)) == set(PARTS)


def test_a_changed_part_is_noticed() -> None:
    """The check itself must be able to fail."""
    changed = TEXT.replace("`boundary-miss-tolerated`", "`boundary-miss-ignored`", 1)
    assert changed != TEXT
    assert render(changed) != changed


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
    """A command that the README shows must be there."""
    assert f"residency {command}" in TEXT
    result = CliRunner().invoke(main, [command, "--help"])
    assert result.exit_code == 0
    assert result.output


@pytest.mark.parametrize("option", ["--source-of", "--json", "--junit", "--smt2"])
def test_options_of_prove_exist(option: str) -> None:
    """Options that the README names are those of the command."""
    assert option in TEXT
    assert option in CliRunner().invoke(main, ["prove", "--help"]).output


def test_make_targets_exist() -> None:
    """The first two commands that a new user types."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:^|`)make ([a-z]+)", TEXT, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_faults_in_the_claims_exist() -> None:
    """The table of claims names switches that a reader may want to throw."""
    for claim in CLAIMS:
        assert set(claim.faults) <= set(FAULTS)


def test_no_file_strays_from_the_layout() -> None:
    """The top level is small enough to be read; what tools demand is all that stands beside."""
    allowed = {
        "spec", "impl", "proofs", "tests", "pyproject.toml", "README.md", ".ci", "Makefile",
        "constraints.txt", "LICENSE", ".gitignore", ".git", ".github",
    }  # fmt: skip
    ignored = {line.strip("/\n") for line in (ROOT / ".gitignore").open(encoding="utf-8")}
    found = {path.name for path in Path(ROOT).iterdir()}
    assert {name for name in found - allowed - ignored if not name.endswith(".egg-info")} == set()
