"""The ledger for people: a table of all claims, and one claim's whole record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from proofs.describe.tables import add_row, name, number, terminal_table, words
from proofs.describe.words import describe_part
from proofs.ledger.gaps import Gap
from proofs.ledger.records import ROOMS, ClaimRecord, Ledger
from proofs.ledger.tests import path_of_test

_SEARCH_ONLY = "search only"


def proved_by(record: ClaimRecord, ledger: Ledger) -> str:
    """How many proofs of each room a claim has: ``rules 5, relation 2``."""
    rooms = Counter(o.room for o in ledger.obligations if o.claim == record.id)
    counts = [f"{room} {rooms[room]}" for room in ROOMS if rooms[room]]
    return ", ".join(counts) or _SEARCH_ONLY


def checked_on(record: ClaimRecord) -> str:
    """Where a claim is searched, and whether a release's source is proved for it."""
    places = [checked.level for checked in record.checked]
    explorer = ["explorer"] if record.explored else []
    return ", ".join([*places, *explorer, *(["source"] if record.source else [])])


def breaking_faults(record: ClaimRecord) -> tuple[str, ...]:
    """Switches that break a claim in any engine, each once."""
    searched = [name for checked in record.checked for name in checked.faults]
    return tuple(dict.fromkeys((*searched, *record.explorer_faults)))


def print_table(ledger: Ledger, console: Console) -> None:
    """One line for each claim."""
    heads = (
        name("claim"),
        words("proved by"),
        words("checked on"),
        number("faults"),
        number("tests"),
    )
    table = terminal_table(*heads)
    for record in ledger.claims:
        add_row(
            table,
            record.id,
            proved_by(record, ledger),
            checked_on(record),
            str(len(breaking_faults(record))),
            str(len(record.tests)),
        )
    console.print(table)
    console.print(
        f"{len(ledger.claims)} claims, {len(ledger.obligations)} proofs, {len(ledger.faults)} "
        f"switches, {len(ledger.assumptions)} assumptions; "
        "[bold]residency claims CLAIM[/] shows all about one"
    )


def print_gaps(gaps: Sequence[Gap], console: Console) -> None:
    """What is missing, one line each."""
    for gap in gaps:
        console.print(f"[bold red]missing[/] {gap.subject}: {gap.text}")


def record_lines(record: ClaimRecord, ledger: Ledger) -> Iterator[str]:
    """All that closes one claim, in words."""
    yield f"{record.id} ({record.kind})"
    yield f"  {record.sentence}"
    yield f"  why it matters: {record.why}"
    yield f"  not expected to hold: {record.not_expected}"
    if record.healthy:
        yield f"  which healthy engine could break it: {record.healthy}"
    yield from _proofs(record, ledger)
    yield from _list("source", map(describe_part, record.source), record.why_no_source)
    for checked in record.checked:
        yield f"  {checked.level}: searched on {', '.join(map(describe_part, checked.scopes))}"
        if checked.witness is not None:
            times = "once" if checked.witness.premises == 1 else f"{checked.witness.premises} times"
            yield f"    witness: {checked.witness.words}; its premise was seen {times}"
    if record.why_not:
        yield f"  at no other level: {record.why_not}"
    if ledger.is_explored:
        yield from _list("explored", record.explored, record.why_not_explored)
    yield from _faults(record, ledger)
    yield from _assumptions(record, ledger)
    yield "  tests"
    for test in record.tests:
        yield f"    {path_of_test(test)}"


def _proofs(record: ClaimRecord, ledger: Ledger) -> Iterator[str]:
    if not record.proofs:
        yield f"  no unbounded proof: {record.why_no_proof}"
        return
    yield f"  proofs: {proved_by(record, ledger)}"
    if record.left_to_search:
        yield f"  left to search: {record.left_to_search}"
    for obligation in ledger.obligations:
        if obligation.name in record.proofs:
            refuted = ", ".join(ablation.name for ablation in obligation.ablations)
            yield f"    {obligation.name}: {obligation.sentence} (refuted: {refuted})"


def _list(title: str, names: Iterator[str] | Sequence[str], reason: str) -> Iterator[str]:
    yield f"  {title}: {', '.join(names) or f'none: {reason}'}"


def _faults(record: ClaimRecord, ledger: Ledger) -> Iterator[str]:
    """Every switch that breaks the claim, in which engines, and whether a proof sees it."""
    yield "  faults that must break it"
    breaking = breaking_faults(record)
    for fault in ledger.faults:
        if fault.name not in breaking:
            continue
        engines = [checked.level for checked in record.checked if fault.name in checked.faults]
        explorer = ["explorer"] if fault.name in record.explorer_faults else []
        proofs = (
            f"refuted as {', '.join(fault.ablations)}" if fault.ablations else "no proof sees it"
        )
        reason = f": {fault.why_no_ablation}" if fault.why_no_ablation else ""
        yield f"    {fault.name}: {', '.join([*engines, *explorer])}; {proofs}{reason}"


def _assumptions(record: ClaimRecord, ledger: Ledger) -> Iterator[str]:
    if not record.assumptions:
        yield "  assumptions: none"
        return
    yield "  assumptions"
    for assumption in ledger.assumptions:
        if assumption.id in record.assumptions:
            yield f"    {assumption.id}: {assumption.sentence}"
            yield f"      without it: {assumption.without}"
            for trace in assumption.traces:
                yield f"      seen, under {trace.claim}: {trace.words}"
            if assumption.ablations and not assumption.traces:
                yield f"      refuted without it: {', '.join(assumption.ablations)}"


def to_json(ledger: Ledger, records: Sequence[ClaimRecord]) -> dict[str, Any]:
    """The records of some claims, with what they rest on and the switches that break them."""
    resting = {name for record in records for name in record.assumptions}
    breaking = {name for record in records for name in breaking_faults(record)}
    return {
        "claims": [asdict(record) for record in records],
        "assumptions": [asdict(a) for a in ledger.assumptions if a.id in resting],
        "faults": [asdict(fault) for fault in ledger.faults if fault.name in breaking],
    }
