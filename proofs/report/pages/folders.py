"""Write the reports on runs: a folder for each violation, and a page over all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from impl.vllm.launch.source import PACKAGE
from proofs.drive.origin import Origin
from proofs.report.near.rerun import Rerun
from proofs.report.pages.account import NO_EVIDENCE, Account, Evidence, account_of
from proofs.report.pages.index import INDEX, Written, row_of, write_index
from proofs.report.pages.loop_page import loop_page
from proofs.report.pages.markdown import markdown_report
from proofs.report.pages.reproduce import Links
from proofs.report.ready.loop import has_loop_ready_test, loop_ready_test
from proofs.report.ready.reference import reference_test
from proofs.run.targets import faults_of
from proofs.search.runs.results import LoopCounterexample
from spec.errors import InputError
from spec.functions.case_files import write_atomically
from spec.record.document import dumps_scenario, dumps_trace
from spec.record.itf import to_itf

__all__ = ["INDEX", "RerunFor", "folder_name", "write_reports", "write_run_reports"]

RerunFor = Callable[[LoopCounterexample], Rerun | None]
"""How the scenario of a violation, and ones near it, are run again; ``None`` where they cannot."""


def folder_name(example: LoopCounterexample) -> str:
    """Name of the folder of one violation: two faults that break one claim have two."""
    return f"{example.finding.claim}-{example.finding.fingerprint}"


def write_reports(
    examples: Sequence[LoopCounterexample], origin: Origin, root: Path, rerun_for: RerunFor
) -> list[Path]:
    """Write the report on each violation, and the page over all of them.

    Args:
        examples: the violations, each with its smallest run.
        origin: where the runs come from.
        root: where the folders go.
        rerun_for: how to run what lies near a violation.

    Returns:
        The files written, the page over all of them last.

    Raises:
        InputError: a file cannot be written.
    """
    written = write_run_reports(examples, origin, root, rerun_for)
    index = write_index(root, written, origin)
    return [*(path for one in written for path in one.paths), index]


def write_run_reports(
    examples: Sequence[LoopCounterexample],
    origin: Origin,
    root: Path,
    rerun_for: RerunFor,
    evidence: Mapping[str, Evidence] | None = None,
) -> list[Written]:
    """Write the report on each violation, without a page over all of them.

    Args:
        examples: the violations, each with its smallest run.
        origin: where the runs come from.
        root: where the folders go.
        rerun_for: how to run what lies near a violation.
        evidence: by fingerprint, what else is known of how a violation was found.

    Raises:
        InputError: a file cannot be written.
    """
    written = []
    for example in examples:
        known = (evidence or {}).get(example.finding.fingerprint, NO_EVIDENCE)
        account = account_of(example, origin, rerun_for(example), evidence=known)
        name = folder_name(example)
        links = _write_report(account, root / name)
        beside = tuple(file for file in links.all if file != links.page)
        paths = tuple(root / name / file for file in links.all)
        written.append(Written(row_of(account, name, beside), paths))
    return written


def _write_report(account: Account, folder: Path) -> Links:
    example = account.example
    test = _test(example)
    links = Links() if test is not None else Links(test=None)
    texts = {
        links.page: loop_page(account, links),
        links.markdown: markdown_report(account, links),
        links.scenario: dumps_scenario(example.trace.scenario, [example.finding]),
        links.trace: dumps_trace(example.trace, [example.finding]),
        links.itf: json.dumps(to_itf(example.trace)) + "\n",
    }
    if links.test is not None and test is not None:
        texts[links.test] = test
    for name, text in texts.items():
        write_atomically(folder / name, text)
    return links


def _test(example: LoopCounterexample) -> str | None:
    """The text of the stand-alone test; ``None`` where there can be none."""
    finding, trace = example.finding, example.trace
    name = folder_name(example).replace("-", "_")
    if faults_of(trace.target) is not None:
        return reference_test(finding, trace, name, runners=example.runners)
    if not (trace.target.startswith(PACKAGE) and has_loop_ready_test(finding.claim)):
        return None
    try:
        return loop_ready_test(
            finding, trace.scenario, trace.target, trace.runner, name, runners=example.runners
        )
    except InputError:
        # The scenario breaks an assumption that the file cannot express.
        return None
