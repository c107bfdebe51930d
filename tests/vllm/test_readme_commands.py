"""What the README shows of a command's output is what the command prints."""

from __future__ import annotations

import json
import re

import pytest

from proofs.describe.words import describe_part
from proofs.recorded import FOLDER as RECORDS
from tests.recorders.record_docs import README
from tests.recorders.record_readme import ELLIPSIS, FOLDER, RECORDED, Shown, output_of, shown_in
from tests.support.releases import require_release

SHOWN = {shown.subcommand: shown for shown in shown_in(README.read_text(encoding="utf-8"))}
RELEASE = "0.23.0"


def recorded(subcommand: str) -> str:
    return (FOLDER / f"{subcommand}.txt").read_text(encoding="utf-8")


def test_every_shown_command_is_held() -> None:
    """Wrong: an output stands in the README that nobody compares with anything."""
    text = README.read_text(encoding="utf-8")
    assert set(SHOWN) == {"replay", *RECORDED}
    assert len(SHOWN) == text.count("```console") == len(shown_in(text))


def test_a_quick_command_prints_what_is_shown() -> None:
    """Wrong: whoever follows the README sees something else."""
    require_release(RELEASE)
    assert SHOWN["replay"].fits(output_of(SHOWN["replay"]))


@pytest.mark.parametrize("subcommand", RECORDED)
def test_a_slow_command_printed_what_is_shown(subcommand: str) -> None:
    """Wrong: the README shows what nobody ever saw."""
    assert SHOWN[subcommand].fits(recorded(subcommand))


def test_the_records_agree_with_what_releases_are_known_to_violate() -> None:
    """Wrong: the records of the outputs were left behind by the code."""
    record = json.loads((RECORDS / "releases.json").read_text(encoding="utf-8"))[RELEASE]
    violated = {(claim, describe_part(part)) for claim, part in record["function_violated"]}
    rows = re.findall(r"^([a-z-]+) +(\S.*?) +REFUTED  ", recorded("check"), re.MULTILINE)
    assert {(claim, part.partition(" (without ")[0]) for claim, part in rows} == violated
    refuted = {tuple(pair) for pair in record["source_refuted"]}
    proved = re.findall(r"^  ([a-z-]+) +(\S+) +([A-Z]+) ", recorded("prove"), re.MULTILINE)
    claim = SHOWN["prove"].arguments[-1]
    parts = {(claim, part) for of_claim, part, verdict in proved if verdict == "REFUTED"}
    assert parts == {pair for pair in refuted if pair[0] == claim}


@pytest.mark.parametrize(
    "lines",
    [["a", "c"], ["a", ELLIPSIS, "d"], ["b", ELLIPSIS], [ELLIPSIS, "b", "d"], [ELLIPSIS, "b", "a"]],
)
def test_another_output_is_noticed(lines: list[str]) -> None:
    """Wrong: the comparison cannot fail."""
    assert not Shown(["check"], lines).fits("a\nb\nc\n")
    assert Shown(["check"], ["a", ELLIPSIS, "c"]).fits("a\nb\nc\n")
    assert Shown(["check"], [ELLIPSIS, "b", "c"]).fits("a\nb\nc\n")
