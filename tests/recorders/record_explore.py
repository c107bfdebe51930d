"""Write what the exhaustive search finds; never by hand.

    python -m tests.recorders.record_explore [FILE] [--check] [--workers N]

``FILE`` is what ``residency explore --json FILE`` wrote of the default scope; without it, the scope
is explored here. Every switch is explored in the small scope. ``--check`` compares with the record
instead of writing it, and exits with 1 where they differ; what the default rules give in the small
scope is left to the tests, which compare it as well.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from impl.faults.switches import FAULTS, fault
from proofs.dossiers.exploration import explored_results
from proofs.explore.chunk import ChunkResult, Found, Job, explore_chunk, merge, num_jobs
from proofs.explore.search import ExploreReport, ExploreSettings, confirm, run_exploration
from proofs.explore.unseen import UNSEEN
from proofs.jobs.workers import worker_processes
from proofs.recorded import FOLDER
from proofs.results.document import to_data
from spec.functions.case_files import write_atomically
from spec.model.rules import FAULTY_RULES
from spec.record.document import dumps_scenario

RECORD = FOLDER / "explore.json"
SCHEMA_VERSION = 1
FAULT_SCOPE = "small"
_COUNTS = ("cases", "states", "edges", "transitions", "depth")


def counts_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """The pinned counts of an exploration, from what ``--json`` writes."""
    (checked,), details = report["targets"], report["details"]
    return {
        "scope": report["settings"]["scope"],
        "claims": {outcome["claim"]: outcome["verdict"] for outcome in checked["outcomes"]},
        "totals": {name: details["totals"][name] for name in _COUNTS},
        "related": details["related"],
        "rows": [
            {"settings": row["settings"], **{name: row[name] for name in _COUNTS}}
            for row in details["rows"]
        ],
    }


def explored(scope: str, workers: int) -> dict[str, Any]:
    """The pinned counts of a scope, explored here."""
    report: ExploreReport = run_exploration(
        ExploreSettings(scope=scope, lockstep=0, workers=workers)
    )
    return counts_of(to_data(explored_results(report)))


def fault_entry(name: str, whole: ChunkResult) -> dict[str, Any]:
    """What the record says of a switch, given what the explorer found.

    Each violation is replayed on the reference with the switch. ``passes`` are those of this run up
    to the finding, ``search`` those of the smallest scenario to which the random search shrinks.
    """
    scenario = fault(name).scenario
    claims: dict[str, Any] = {}
    for claim in sorted(whole.found):
        found = whole.found[claim]
        confirmed = confirm(found, name)
        if confirmed.finding is None:
            raise RuntimeError(f"{name}: the reference does not show {claim}: {found.scenario}")
        search = None
        if scenario is not None and claim in fault(name).breaks_in_loop:
            search = confirm(Found(claim, 0, scenario, 1), name).passes
        claims[claim] = {
            "passes": confirmed.passes,
            "search": search,
            "cases": found.cases,
            "scenario": json.loads(dumps_scenario(found.scenario)),
        }
    return {"scope": FAULT_SCOPE, "claims": claims}


def explore_fault(name: str) -> dict[str, Any]:
    """What the record says of a switch."""
    jobs = (Job(FAULT_SCOPE, name, number, 0, 0) for number in range(num_jobs(FAULT_SCOPE)))
    whole = merge(explore_chunk(job) for job in jobs)
    assert whole is not None
    return fault_entry(name, whole)


def _faults(workers: int) -> Iterator[tuple[str, dict[str, Any]]]:
    names = [
        fault.name for fault in FAULTS if fault.name in FAULTY_RULES and fault.name not in UNSEEN
    ]
    with worker_processes(workers) as pool:
        yield from zip(names, pool.map(explore_fault, names), strict=True)


def record(
    report: Mapping[str, Any] | None, workers: int, small: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The whole record.

    Args:
        report: what was found in the default scope; ``None`` to explore it here.
        workers: processes at once.
        small: the counts of the small scope; ``None`` to explore it here.
    """
    counts = explored("default", workers) if report is None else counts_of(report)
    faults = dict(_faults(workers))
    return {
        "schema": SCHEMA_VERSION,
        **counts,
        "small": explored(FAULT_SCOPE, workers) if small is None else small,
        "faults": faults,
        "unseen": UNSEEN,
    }


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Where two records differ, in a few words each."""
    names = [name for name in new if name not in ("faults", "rows", "small")]
    found = [name for name in names if old.get(name) != new[name]]
    for scope, before, after in (
        ("default", old, new),
        ("small", old.get("small", {}), new["small"]),
    ):
        rows = zip(before.get("rows", ()), after["rows"], strict=False)
        found += [f"{scope}, row {n}" for n, (a, b) in enumerate(rows) if a != b]
        if len(before.get("rows", ())) != len(after["rows"]):
            found.append(f"{scope}: number of rows")
    faults = {*old.get("faults", {}), *new["faults"]}
    found += [
        f"fault {name}"
        for name in sorted(faults)
        if old.get("faults", {}).get(name) != new["faults"].get(name)
    ]
    return found


def main() -> int:
    """Write or compare; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    report = None
    if arguments.file is not None:
        report = json.loads(arguments.file.read_text(encoding="utf-8"))
        settings = report["settings"]
        is_whole = settings["relation"] == 1 and not report["details"]["interrupted"]
        if settings["scope"] != "default" or settings["fault"] or not is_whole:
            print(f"{arguments.file}: not a whole exploration of the default scope")
            return 2
    old = json.loads(RECORD.read_text(encoding="utf-8")) if arguments.check else {}
    new = record(report, arguments.workers, old.get("small"))
    if not arguments.check:
        write_atomically(RECORD, json.dumps(new, indent=1) + "\n")
        print(f"wrote {RECORD}")
        return 0
    differences = _differences(old, json.loads(json.dumps(new)))
    for difference in differences:
        print(f"{RECORD}: not as recorded: {difference}")
    return int(bool(differences))


if __name__ == "__main__":
    sys.exit(main())
