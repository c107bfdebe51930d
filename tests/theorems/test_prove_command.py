"""The prover's command: its files, its exit codes, its answers to wrong use."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import z3
from click.testing import CliRunner

import proofs
from proofs.results.document import results_of, to_data
from proofs.results.junit import to_junit
from proofs.smt import proving as runner
from proofs.smt.obligation import Ablation, Formula, Obligation, Result, prove
from proofs.smt.outputs import checked_rules, to_smt2
from proofs.smt.vocabulary import Vocabulary
from proofs.theorems import prove as prove_command
from proofs.theorems.groups import GROUPS, SCRIPTS, all_obligations, select
from proofs.theorems.prove import prove as prove_cli
from spec.errors import InputError
from spec.verdict import Verdict
from tests.support.results_files import read_results

ALL = all_obligations()
BY_NAME = {obligation.name: obligation for obligation in ALL}


FEW = (*GROUPS["boundary"], *GROUPS["rows"], *GROUPS["slots"][-3:])
"""Obligations with masks, and on a state of the relation; all are proved in another module."""


@pytest.fixture(scope="module")
def results() -> list[Result]:
    return [prove(obligation) for obligation in FEW]


def _is_positive(v: Vocabulary) -> Formula:
    x = v.integer("x")
    return Formula({"x-at-least-2": x >= 2}, x > 0)


def _is_positive_unless_forbidden(v: Vocabulary) -> Formula:
    x = v.integer("x")
    return Formula({}, x > 0)


SOUND = Obligation(
    claim="no-error",
    group="test",
    short_name="positive",
    sentence="two or more is positive",
    build=_is_positive,
    witness={"x": 3},
    ablations=(Ablation("anything", drops=("x-at-least-2",)),),
)


# Outputs


def test_json_has_exactly_the_published_fields(results: list[Result]) -> None:
    """Readers of the file rely on its fields."""
    document = to_data(results_of("prove-rules", [checked_rules(results)], settings={}))
    (checked,) = document["targets"]
    outcomes = checked["outcomes"]
    assert [outcome["part"] for outcome in outcomes] == [o.name for o in FEW]
    for outcome in outcomes:
        required = {"claim", "part", "verdict", "proof"}
        assert required <= set(outcome) <= {*required, "assumptions"}
        proof = outcome["proof"]
        fields = {"group", "solvers", "rlimit", "milliseconds", "witness", "ablations"}
        assert set(proof) == fields
        assert proof["solvers"] == {"z3": "unsat", "cvc5": "unsat"}
        assert proof["rlimit"] > 0
        for ablation in proof["ablations"]:
            assert set(ablation) == {"name", "verdict", "model"}
            assert ablation["model"]


def test_junit_fails_for_anything_but_proved() -> None:
    """A pipeline that reads JUnit must not take an UNKNOWN for a success."""
    proved = prove(SOUND)
    results = [replace(proved, verdict=verdict, detail="why") for verdict in Verdict]
    suites = ElementTree.fromstring(to_junit([checked_rules(results)]))
    tags = [[child.tag for child in case] for case in suites.iter("testcase")]
    expected = {Verdict.PROVED: [], Verdict.HELD: [], Verdict.REFUTED: ["failure"]}
    assert tags == [expected.get(verdict, ["error"]) for verdict in Verdict]
    assert suites.get("failures") == "1"
    assert suites.get("errors") == str(len(Verdict) - 3)


@pytest.mark.parametrize("name", BY_NAME)
def test_smt2_is_read_back_as_unsat(name: str) -> None:
    """A third solver must be asked the same question."""
    text = to_smt2(BY_NAME[name])
    solver = z3.SolverFor("QF_UFLIA")
    solver.from_string(text)
    assert solver.check() == z3.unsat
    assert "(set-info :status unsat)" in text
    assert text.count("(check-sat)") == 1


# The command


def test_command_writes_its_files(tmp_path: Path) -> None:
    """The files of a CI job must be there, complete, with exit code 0."""
    arguments = ["--group", "slices", "--group", "accounting", "--ablations"]
    arguments += ["--json", str(tmp_path / "o.json"), "--junit", str(tmp_path / "o.xml")]
    outcome = CliRunner().invoke(prove_cli, [*arguments, "--smt2", str(tmp_path / "smt2")])
    assert outcome.exit_code == 0, outcome.output
    names = {o.name for o in GROUPS["slices"] + GROUPS["accounting"]}
    document = read_results(tmp_path / "o.json", "prove-rules")
    assert {o["part"] for o in document["targets"][0]["outcomes"]} == names
    assert {path.stem for path in (tmp_path / "smt2").glob("*.smt2")} == names
    cases = ElementTree.parse(tmp_path / "o.xml").iter("testcase")
    assert {case.get("name") for case in cases} == names
    assert all(name in outcome.output for name in names)
    assert "without empty-step: REFUTED" in outcome.output


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--group", "nope"], 2, "unknown group 'nope'; known groups: boundary"),
        (["--claim", "nope"], 2, "unknown claim 'nope'; known claims: "),
        (["--group", "boundary", "--claim", "slots-conserved"], 5, "0 obligations: none done"),
        (["--claim", "no-thrash"], 5, "0 obligations: none done"),
        (["--group", "rows", "--rlimit", "20"], 3, "UNKNOWN"),
        (["--rlimit", "0"], 2, "Invalid value"),
    ],
)
def test_command_exit_codes(arguments: list[str], code: int, message: str) -> None:
    """An exit code that says less than the output would let a pipeline pass."""
    outcome = CliRunner().invoke(prove_cli, arguments)
    assert outcome.exit_code == code
    assert message in outcome.output


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"build": _is_positive_unless_forbidden}, 1),
        ({"witness": {"x": 1}}, 4),
        ({"ablations": ()}, 5),
    ],
)
def test_command_exit_code_of_each_verdict(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], code: int
) -> None:
    """One bad obligation among good ones decides the exit code."""
    bad = replace(SOUND, short_name="bad", **changes)
    monkeypatch.setattr(prove_command, "select", lambda *_: (SOUND, bad))
    outcome = CliRunner().invoke(prove_cli, [])
    assert outcome.exit_code == code
    assert "test.bad" in outcome.output


def test_command_interrupted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ctrl-C tells what was done and never looks like a success."""

    def interrupted(obligation: Obligation, limit: int) -> Result:
        if obligation.name == "slices.in-range":
            raise KeyboardInterrupt
        return prove(obligation, limit)

    monkeypatch.setattr(runner, "prove", interrupted)
    outcome = CliRunner().invoke(
        prove_cli, ["--group", "slices", "--json", str(tmp_path / "o.json")]
    )
    assert outcome.exit_code == 130
    assert "Interrupted." in outcome.output
    assert "1 of 5 obligations" in outcome.output
    (checked,) = json.loads((tmp_path / "o.json").read_text())["targets"]
    assert len(checked["outcomes"]) == 1


def test_unwritable_file_is_a_usage_error(tmp_path: Path) -> None:
    """A file that cannot be written is the user's to mend, without a traceback."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    outcome = CliRunner().invoke(
        prove_cli, ["--group", "slices", "--json", str(blocked / "o.json")]
    )
    assert outcome.exit_code == 2
    assert "cannot be written" in outcome.output


def test_missing_solver_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one of the solvers nothing can be proved, and the message says what to install."""
    monkeypatch.setattr("proofs.smt.solvers._missing", "No module named 'cvc5'")
    outcome = CliRunner().invoke(prove_cli, [])
    assert outcome.exit_code == 2
    assert "pip install" in outcome.output


@pytest.mark.filterwarnings("ignore:.*found in sys.modules")
@pytest.mark.parametrize("group", GROUPS)
def test_group_is_a_script(
    group: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong: a CI job cannot run one group by itself, or is told of another group.

    What the script proves is not proved again here.
    """
    proved = prove(SOUND)
    monkeypatch.setattr(
        runner, "prove", lambda obligation, limit: replace(proved, obligation=obligation)
    )
    monkeypatch.setattr(sys, "argv", [group])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(SCRIPTS[group], run_name="__main__")
    assert ended.value.code == 0
    output = capsys.readouterr().out
    assert f"{len(GROUPS[group])} obligations: {len(GROUPS[group])} PROVED" in output
    assert all(obligation.name in output for obligation in GROUPS[group])


def test_a_script_ends_with_its_verdict() -> None:
    """Wrong: a script that works inside of a test only."""
    outcome = subprocess.run(
        [sys.executable, "-m", SCRIPTS["bisection"]],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(proofs.__file__).parent.parent,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert f"{len(GROUPS['bisection'])} obligations: " in outcome.stdout
    assert outcome.stderr == ""


def test_select_keeps_groups_and_claims_together() -> None:
    """Both filters apply, not one or the other."""
    chosen = select(["lifetime"], ["held-until-last-use"])
    assert chosen
    assert {(o.group, o.claim) for o in chosen} == {("lifetime", "held-until-last-use")}
    with pytest.raises(InputError, match="unknown group"):
        select(["nope"])
