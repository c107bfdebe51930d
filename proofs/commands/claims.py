"""``residency claims``: every claim and what closes it."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from proofs.jobs.ending import PlainCommand
from proofs.ledger.build import build_ledger
from proofs.ledger.claim_text import print_gaps, print_table, record_lines, to_json
from proofs.ledger.gaps import gaps
from proofs.results.document import dumps, results_of
from spec.claims.texts import any_claim
from spec.functions.case_files import require_writable, write_atomically
from spec.verdict import Verdict, exit_code

_OUTPUT = click.Path(dir_okay=False, path_type=Path)


@click.command("claims", cls=PlainCommand)
@click.argument("claim", required=False)
@click.option("--json", "json_file", type=_OUTPUT, help="Write the records as JSON.")
def claims(*, claim: str | None, json_file: Path | None) -> int:
    """Show every claim, or all about one CLAIM.

    Proofs, or why only search covers it; where it is searched; a witness, run now, in which its
    premise happens; the switches that break it; its assumptions, and what breaks without each; the
    tests to look at.

    Exits 0 when nothing is missing, 5 when something is, 2 for wrong input and 130 after Ctrl-C.
    """
    if claim is not None:
        any_claim(claim)
    if json_file is not None:
        require_writable(json_file)
    console = Console()
    ledger = build_ledger()
    missing = gaps(ledger)
    code = exit_code([Verdict.ERROR if missing else Verdict.PROVED])
    records = ledger.claims if claim is None else (ledger.claim(claim),)
    if claim is None:
        print_table(ledger, console)
    else:
        for line in record_lines(records[0], ledger):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    if json_file is not None:
        results = results_of(
            "claims",
            [],
            settings={"claim": claim},
            details=to_json(ledger, records),
            code=code,
        )
        write_atomically(json_file, dumps(results))
    print_gaps(missing, console)
    return code
