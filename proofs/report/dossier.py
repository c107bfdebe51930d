"""Write what belongs to one finding: the page, the ready test and the case."""

from __future__ import annotations

import re
from pathlib import Path

from proofs.report.page import page
from proofs.report.ready_test import ready_test
from proofs.report.target_info import TargetInfo, is_vllm, part_of
from spec.findings import Finding
from spec.trace import dumps, write_atomically


def write_dossier(finding: Finding, directory: Path, target_info: TargetInfo) -> list[Path]:
    """Write the files of one finding, each in one step.

    The names hold the claim, the part and the fingerprint, so that two faults that break one claim
    do not overwrite each other. For the reference there is no ready test: it is not upstream's.

    Args:
        finding: what was found.
        directory: where to write; made when it is not there.
        target_info: the target it was found on.

    Returns:
        The page, the ready test if there is one, and the case.

    Raises:
        InputError: a file cannot be written.
    """
    part = part_of(finding, target_info)
    stem = f"{finding.claim}-{_plain_name(part)}-{finding.fingerprint}"
    json_file = directory / f"{stem}.json"
    page_file = directory / f"{stem}.md"
    written = [page_file]
    test_name = None
    if is_vllm(target_info):
        name = _plain_name(f"{finding.claim}-{part}").replace("-", "_")
        test_name = f"test_{name}_{finding.fingerprint}.py"
        test_file = directory / test_name
        write_atomically(test_file, ready_test(finding, part, name))
        written.append(test_file)
    write_atomically(page_file, page(finding, target_info, json_file.name, test_name))
    write_atomically(json_file, dumps(finding.function_case, (finding,)))
    return [*written, json_file]


def _plain_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
