"""What machines are told: annotations, summaries, JUnit and SARIF, and the line to blame."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from impl.targets.runs import ReferenceLoop
from impl.vllm.launch.source import cache_folder, unpacked
from proofs.commands.main import main
from proofs.results.blame import SourcePlace, place_of_loop_claim, place_of_part
from proofs.results.document import results_of
from proofs.results.github import (
    MOST_ANNOTATIONS,
    SUMMARY_LIMIT,
    annotation_lines,
    announce,
    append_summary,
    summary,
)
from proofs.results.junit import to_junit
from proofs.results.outcome import Checked, Outcome
from proofs.results.publish import MachineFiles, publish
from proofs.results.sarif import to_sarif
from proofs.results.violation import Violation
from proofs.search.functions.parts import CLAIMS_OF_PART
from proofs.search.runs.results import LoopCheckSettings, LoopReport
from proofs.search.runs.search import run_loop_check
from proofs.search.runs.search_text import checked_runs
from spec.claims.texts import LOOP_CLAIMS
from spec.errors import InputError
from spec.verdict import Verdict
from tests.support.fake_release import write_release
from tests.support.fake_scheduler import write_scheduling_release
from tests.support.hostile_names import NAMES, names


def violation(number: int = 0, text: str = "made up", **changes: Any) -> Violation:
    """A violation with nothing special about it."""
    given_values = {
        "claim": "no-stall",
        "mechanism": text,
        "fingerprint": f"{number:012x}",
        "target": "vllm 0.0.1 V1",
        "observed": text,
        "expected": text,
        "smallest": text,
    }
    return Violation(**{**given_values, **changes})


def unescaped(text: str) -> str:
    """The text as the runner reads it."""
    for escape, character in (("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%0D", "\r")):
        text = text.replace(escape, character)
    return text.replace("%25", "%")


# Annotations


@given(names)
def test_an_annotation_is_one_command(name: str) -> None:
    """A line end in a name would be a command of its own, or cut the message."""
    (line,) = annotation_lines([violation(text=name, claim=name, target=name)], None)
    assert line.isprintable()
    found = re.fullmatch(r"::error title=([^,:]*)::(.*)", line)
    assert found is not None, line
    message = unescaped(found[2]).split("\n")
    assert [part.partition(":")[0] for part in message[1:]] == ["observed", "expected", "smallest"]


def test_characters_of_the_command_are_escaped() -> None:
    """The message would end early, or a percent sign turn into something else."""
    (line,) = annotation_lines([violation(text="100%: a, b::c\nd")], None)
    assert r"vllm 0.0.1 V1: 100%25: a, b::c\nd%0Aobserved: " in line
    (line,) = annotation_lines([violation(claim="a:b,c%")], None)
    assert "title=a%3Ab%2Cc%25 is violated" in line


def test_a_place_is_given_below_the_workspace_only(tmp_path: Path) -> None:
    """The site would mark a file that the pull request does not have."""
    place = SourcePlace(tmp_path, "vllm/v1/core/sched/scheduler.py", 12, "Scheduler.schedule")
    (line,) = annotation_lines([violation(place=place)], str(tmp_path))
    assert line.startswith("::error file=vllm/v1/core/sched/scheduler.py,line=12,title=")
    (line,) = annotation_lines([violation(place=place)], str(tmp_path / "other"))
    assert line.startswith("::error title=")


def test_no_more_than_the_site_shows_and_only_what_is_new() -> None:
    """Of more errors the site drops some in silence."""
    many = [violation(number) for number in range(MOST_ANNOTATIONS + 3)]
    old = violation(99, is_new=False)
    lines = annotation_lines([old, *many], None)
    assert len(lines) == MOST_ANNOTATIONS
    assert f"{99:012x}" not in "".join(lines)
    text = "\n\n".join(summary("a check", [old, *many]))
    assert all(finding.fingerprint in text for finding in (*many, old))
    assert f"The first {MOST_ANNOTATIONS} are marked" in text
    assert "There before: 1 violation." in text


def test_nothing_is_said_outside_of_actions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A terminal would be full of commands that it does not know."""
    announce("a check", [violation()], environment={})
    assert capsys.readouterr().out == ""
    file = tmp_path / "summary.md"
    announce("a check", [violation()], environment={"GITHUB_STEP_SUMMARY": str(file)})
    assert capsys.readouterr().out == ""
    assert "no-stall" in file.read_text()
    announce("a check", [violation()], environment={"GITHUB_ACTIONS": "true"})
    assert capsys.readouterr().out.startswith("::error ")


# Summaries


def test_a_summary_is_appended(tmp_path: Path) -> None:
    """What an earlier command of the step said would be lost."""
    file = tmp_path / "summary.md"
    file.write_text("before\n")
    environment = {"GITHUB_STEP_SUMMARY": str(file)}
    announce("one", [], environment=environment)
    announce("two", [violation()], ["### the report"], environment)
    text = file.read_text()
    assert text.startswith("before\n\n## one\n\nNo claim is violated.\n")
    assert text.index("## two") < text.index("| `no-stall` |") < text.index("### the report")


def test_a_summary_never_passes_its_limit(tmp_path: Path) -> None:
    """The site would drop all of it."""
    file = tmp_path / "summary.md"
    environment = {"GITHUB_STEP_SUMMARY": str(file)}
    for _ in range(3):
        append_summary(
            ["head", "é" * (SUMMARY_LIMIT // 3), "x" * (SUMMARY_LIMIT // 2)], environment
        )
        assert file.stat().st_size <= SUMMARY_LIMIT
    assert "the summary is full" in file.read_text()


def test_a_summary_that_cannot_be_written_fails_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A check would end with a traceback for want of a summary."""
    append_summary(["x"], {"GITHUB_STEP_SUMMARY": str(tmp_path)})
    assert "the summary cannot be written" in capsys.readouterr().err


# JUnit


@given(st.lists(st.tuples(names, st.sampled_from([None, *Verdict])), min_size=1, max_size=5))
def test_junit_can_be_read_whatever_the_names(cases: list[tuple[str, Verdict | None]]) -> None:
    """A control character makes the whole file unreadable, and its reader report success."""
    outcomes = tuple(Outcome("claim", name, verdict, reason=name) for name, verdict in cases)
    read = ElementTree.fromstring(to_junit([Checked(cases[0][0], outcomes)]))
    tags = [[child.tag for child in case] for case in read.iter("testcase")]
    expected = {
        None: ["skipped"],
        Verdict.PROVED: [],
        Verdict.HELD: [],
        Verdict.REFUTED: ["failure"],
    }
    assert tags == [expected.get(verdict, ["error"]) for _, verdict in cases]


# SARIF

_TEXT = {"type": "string", "minLength": 1}
_MESSAGE = {"type": "object", "required": ["text"], "properties": {"text": _TEXT}}
_RULE = {
    "type": "object",
    "required": ["id"],
    "additionalProperties": False,
    "properties": {
        "id": _TEXT,
        "shortDescription": _MESSAGE,
        "fullDescription": _MESSAGE,
        "defaultConfiguration": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"level": {"enum": ["none", "note", "warning", "error"]}},
        },
    },
}
_LOCATION = {
    "type": "object",
    "required": ["physicalLocation"],
    "additionalProperties": False,
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation", "region"],
            "additionalProperties": False,
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "required": ["uri"],
                    "additionalProperties": False,
                    # Code scanning takes relative addresses only.
                    "properties": {
                        "uri": {"type": "string", "pattern": r"^[A-Za-z0-9._~%-][^:\\ ]*$"},
                        "uriBaseId": _TEXT,
                    },
                },
                "region": {
                    "type": "object",
                    "required": ["startLine"],
                    "additionalProperties": False,
                    "properties": {"startLine": {"type": "integer", "minimum": 1}},
                },
            },
        },
        "logicalLocations": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {"fullyQualifiedName": _TEXT, "kind": {"const": "function"}},
            },
        },
    },
}
_RESULT = {
    "type": "object",
    "required": ["message", "ruleId", "ruleIndex", "level", "locations", "partialFingerprints"],
    "additionalProperties": False,
    "properties": {
        "ruleId": _TEXT,
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": _MESSAGE,
        "locations": {"type": "array", "minItems": 1, "maxItems": 1, "items": _LOCATION},
        "partialFingerprints": {"type": "object", "additionalProperties": _TEXT},
    },
}
_RUN = {
    "type": "object",
    "required": ["tool", "results"],
    "additionalProperties": False,
    "properties": {
        "tool": {
            "type": "object",
            "required": ["driver"],
            "additionalProperties": False,
            "properties": {
                "driver": {
                    "type": "object",
                    "required": ["name"],
                    "additionalProperties": False,
                    "properties": {
                        "name": _TEXT,
                        "version": _TEXT,
                        "rules": {"type": "array", "uniqueItems": True, "items": _RULE},
                    },
                }
            },
        },
        "results": {"type": "array", "items": _RESULT},
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "versionControlProvenance": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["repositoryUri"],
                "additionalProperties": False,
                "properties": {
                    "repositoryUri": {"type": "string", "format": "uri"},
                    "revisionTag": _TEXT,
                },
            },
        },
    },
}
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "items": _RUN},
    },
}
"""What the published schema says of the fields that we write, and no other field."""


@given(st.lists(names, min_size=1, max_size=4))
def test_sarif_has_the_published_form(texts: list[str]) -> None:
    """A service refuses a file with a field too few or too many."""
    place = SourcePlace(Path("/x"), "vllm/v1/a b.py", 3, "A.b")
    found = [
        violation(number, text, place=place, claim=claim, is_new=number % 2 == 0)
        for number, (text, claim) in enumerate(
            zip(texts, ["no-stall", "unheard-of"] * len(texts), strict=False)
        )
    ]
    targets = (
        Checked("a checkout", (), tuple(found)),
        Checked("vllm 0.33.0", (), release="0.33.0"),
        Checked("another", (), (violation(),)),
    )
    data = json.loads(to_sarif(targets))
    jsonschema.validate(data, SARIF)
    first, second, third = data["runs"]
    rules = first["tool"]["driver"]["rules"]
    for result in first["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    levels = [result["level"] for result in first["results"]]
    assert levels == [("error", "note")[number % 2] for number in range(len(found))]
    assert first["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == (
        "vllm/v1/a%20b.py"
    )
    assert second["versionControlProvenance"][0]["revisionTag"] == "v0.33.0"
    assert third["results"] == []  # It has no line to show it at.


# Whom to blame


def test_each_claim_is_blamed_on_a_function_that_is_there(tmp_path: Path) -> None:
    """A reader would be sent to a line that has nothing to do with it."""
    package = write_scheduling_release(tmp_path)
    for claim in LOOP_CLAIMS.values():
        place = place_of_loop_claim(package, claim.id, ("V1",))
        assert place is not None, claim.id
        line = (place.root / place.file).read_text().splitlines()[place.line - 1]
        assert re.match(rf"\s*(def|class) {place.name.rpartition('.')[2]}\b", line), claim.id
    stall = place_of_loop_claim(package, "no-stall", ("V1", "V2"))
    assert stall is not None
    assert stall.name == "Scheduler._try_schedule_encoder_inputs"
    slots = place_of_loop_claim(package, "slots-conserved", ("V1",), is_encoder_decoder=True)
    assert slots is not None
    assert slots.name == "EncoderDecoderCacheManager"
    for part in (*CLAIMS_OF_PART, "scheduling", "scheduling whole far"):
        if part not in ("V2", "V1 with V2"):
            assert place_of_part(package, part) is not None, part
    assert place_of_part(package, "V2") is None  # The tiny release has no such file.
    assert place_of_part(tmp_path / "nothing", "V1") is None


NEWEST = "0.33.0"


@pytest.mark.vllm
@pytest.mark.skipif(unpacked(cache_folder(), NEWEST) is None, reason="run `make vllm` first")
def test_each_function_to_blame_is_in_the_newest_release() -> None:
    """A renamed function would be blamed on its class, or on nothing."""
    source = unpacked(cache_folder(), NEWEST)
    assert source is not None
    for part in CLAIMS_OF_PART:
        place = place_of_part(source.package, part)
        assert place is not None, part
        assert ("." in place.name) or part in (
            "book",
            "book of unlike contents",
            "encoder_decoder_book",
            "window",
        ), part
    for claim in LOOP_CLAIMS.values():
        assert place_of_loop_claim(source.package, claim.id, ("V2",)) is not None, claim.id


# All of it together


def test_the_folder_gets_what_other_tools_read(tmp_path: Path) -> None:
    """A build server would find nothing beside the pages."""
    place = SourcePlace(tmp_path, "vllm/a.py", 1, "a")
    found = violation(place=place)
    checked = Checked("vllm 0.0.1", (Outcome("no-stall", "V1", Verdict.REFUTED),), (found,))
    files = MachineFiles(None, tmp_path / "j.xml", tmp_path / "s.sarif", tmp_path / "report")
    assert publish("a check", results_of("check-runs", [checked], settings={}), files) == 1
    folder = tmp_path / "report"
    assert (folder / "junit.xml").read_text() == (tmp_path / "j.xml").read_text()
    assert (folder / "results.sarif").read_text() == (tmp_path / "s.sarif").read_text()
    other = MachineFiles(folder=tmp_path / "other")
    checked = Checked("reference", (), (violation(),))
    publish("a check", results_of("check-runs", [checked], settings={}), other)
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["junit.xml"]


def test_a_file_that_cannot_be_written_is_told_before(tmp_path: Path) -> None:
    """An hour of work would be lost at its end."""
    with pytest.raises(InputError, match="there is no folder"):
        MachineFiles(sarif=tmp_path / "no" / "s.sarif").require_writable()


def test_every_hostile_name_is_harmless_in_a_summary() -> None:
    """One name would call people, or break the table that tells of all others."""
    text = summary("a check", [violation(n, name) for n, name in enumerate(NAMES)])
    lines = text[-1].splitlines()
    assert len(lines) == len(NAMES) + 2
    assert all(line.isprintable() for line in lines)


def test_a_proof_of_a_source_names_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refuted claim on a checkout would not be shown where its function stands."""
    write_release(tmp_path, utils=("bisect.bisect_right(ends", "bisect.bisect_left(ends"))
    summary_file, sarif, junit = (tmp_path / name for name in ("s.md", "s.sarif", "j.xml"))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary_file))
    words = ("--source-of", tmp_path, "--claim", "window-exact", "--sarif", sarif, "--junit", junit)
    result = CliRunner().invoke(main, ["prove", *map(str, words)])
    assert result.exit_code == 1, result.output
    (line,) = (line for line in result.output.splitlines() if line.startswith("::error "))
    place = place_of_part(tmp_path / "vllm", "window")
    assert place is not None
    assert line.startswith(f"::error file=vllm/multimodal/utils.py,line={place.line},title=")
    (found,) = json.loads(sarif.read_text())["runs"][0]["results"]
    region = found["locations"][0]["physicalLocation"]["region"]
    assert (found["ruleId"], region["startLine"]) == ("window-exact", place.line)
    assert "window-exact" in summary_file.read_text()
    assert [child.tag for child in ElementTree.parse(junit).iter("failure")] == ["failure"]
    refused = CliRunner().invoke(main, ["prove", "--sarif", str(sarif)])
    assert refused.exit_code == 2
    assert "add --source-of" in refused.output


# What commands found


@pytest.fixture(scope="module")
def found() -> LoopReport:
    """A search with findings."""
    claims = ("boundary-miss-tolerated", "need-agrees")
    target = ReferenceLoop(["no-boundary-tolerance"])
    return run_loop_check(target, LoopCheckSettings(claims=claims, examples=40))


def test_what_was_there_before_fails_no_build(found: LoopReport) -> None:
    """A build server that reads JUnit would be red for what the change did not do."""
    fingerprints = {example.finding.fingerprint for example in found.counterexamples}
    assert fingerprints
    new, old = checked_runs(found), checked_runs(found, there=fingerprints)
    assert {v.fingerprint for v in new.violations if v.is_new} == fingerprints
    assert not [v for v in old.violations if v.is_new]
    failed, skipped = (
        {
            (case.get("name"), case.get("classname"))
            for case in ElementTree.fromstring(to_junit([checked])).iter("testcase")
            if case.find(tag) is not None
        }
        for checked, tag in ((new, "failure"), (old, "skipped"))
    )
    assert failed
    assert failed <= skipped
    assert "<failure" not in to_junit([old])


def test_a_finding_without_known_text_is_told_all_the_same() -> None:
    """A claim of a newer version would end a report with a traceback."""
    assert violation(claim="unheard-of").text is None
    assert violation().text is not None
