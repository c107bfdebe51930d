"""``residency claims`` shows what the ledger holds, and exits with an error where it has gaps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from proofs.commands import claims as claims_command
from proofs.commands.main import main
from proofs.ledger.build import build_ledger
from proofs.ledger.claim_text import breaking_faults, checked_on, proved_by, record_lines, to_json
from proofs.ledger.records import Ledger
from proofs.ledger.tests import path_of_test
from spec.claims.texts import ALL_TEXTS
from tests.support.results_files import read_results


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return build_ledger()


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["claims", *arguments])


def test_the_table_has_every_claim() -> None:
    """Wrong: a claim that nobody is shown."""
    result = _run()
    assert result.exit_code == 0
    shown = {line.split()[0] for line in result.output.splitlines() if line[:1].isalpha()}
    assert set(ALL_TEXTS) <= shown
    assert "missing" not in result.output


def test_one_claim_is_told_in_full(ledger: Ledger) -> None:
    """Wrong: a link that is in the ledger, and not in what a reader sees."""
    result = _run("held-until-last-use")
    assert result.exit_code == 0
    record = ledger.claim("held-until-last-use")
    for text in (
        record.sentence,
        record.why,
        record.not_expected,
        *record.proofs,
        *record.assumptions,
        *breaking_faults(record),
        *(path_of_test(test) for test in record.tests),
        *(checked.witness.words for checked in record.checked if checked.witness),
    ):
        assert text in result.output
    for test in record.tests:
        assert Path(path_of_test(test).split("::")[0]).is_file(), test


@pytest.mark.parametrize("claim_id", sorted(ALL_TEXTS))
def test_every_reason_is_told(ledger: Ledger, claim_id: str) -> None:
    """Wrong: a link is missing, and the reader is not told why."""
    record = ledger.claim(claim_id)
    text = "\n".join(record_lines(record, ledger))
    for reason in (record.why_no_proof, record.why_no_source, record.why_not):
        assert reason in text
    assert "None" not in text


def test_the_json_file_holds_the_records(ledger: Ledger, tmp_path: Path) -> None:
    """Wrong: a tool reads other links than a person."""
    for arguments, claims in (((), list(ALL_TEXTS)), (("no-stall",), ["no-stall"])):
        file = tmp_path / "claims.json"
        assert _run(*arguments, "--json", str(file)).exit_code == 0
        data = read_results(file, "claims")
        assert [record["id"] for record in data["details"]["claims"]] == claims
    assert data["details"] == json.loads(json.dumps(to_json(ledger, [ledger.claim("no-stall")])))
    details = data["details"]
    assert {a["id"] for a in details["assumptions"]} == set(ledger.claim("no-stall").assumptions)
    assert {f["name"] for f in details["faults"]} == set(breaking_faults(ledger.claim("no-stall")))


def test_a_gap_is_shown_and_is_an_error(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: a claim that is not closed goes out with exit code 0."""
    cut = replace(ledger, faults=ledger.faults[1:])
    monkeypatch.setattr(claims_command, "build_ledger", lambda: cut)
    result = _run()
    assert result.exit_code == 5
    assert f"the fault {ledger.faults[0].name} does not break it" in " ".join(result.output.split())


@pytest.mark.parametrize("arguments", [("no-such-claim",), ("--json", "/nowhere/claims.json")])
def test_wrong_use_is_one_clear_error(arguments: tuple[str, ...]) -> None:
    """Wrong: a misspelt claim ends in a traceback, or shows nothing at all."""
    result = _run(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert arguments[-1] in result.output


def test_proofs_are_counted_by_room(ledger: Ledger) -> None:
    """Wrong: a claim that only search covers looks proved, or the other way round."""
    for record in ledger.claims:
        text = proved_by(record, ledger)
        counts = [int(word.split()[1]) for word in text.split(", ") if word != "search only"]
        assert sum(counts) == len(record.proofs)
        assert bool(record.why_no_proof) == (text == "search only")
    assert checked_on(ledger.claim("window-exact")) == "functions, source"
