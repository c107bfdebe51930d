"""Findings that a command wrote with ``--json``, as documents that can be run again."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass

from proofs.drive.documents import AnyDocument, loads_document
from proofs.results.document import Results
from proofs.results.outcome import Checked
from proofs.run.targets import TargetChoice, faults_of


@dataclass(frozen=True)
class RecordedFindings:
    """What a command found on one target.

    Attributes:
        documents: the smallest case or run of each finding.
        num_without: findings that hold nothing to run.
        code_named: the options that name a checkout or a scheduler, where the file names one;
            ``None`` for a release and the reference. A file that somebody sent must not decide
            which code runs.
    """

    choice: TargetChoice
    documents: tuple[AnyDocument, ...]
    num_without: int
    code_named: str | None = None


def recorded_findings(results: Results, where: str) -> list[RecordedFindings]:
    """What a file of results holds that can be run again, target by target.

    Raises:
        InputError: a document in it is broken, or the file names code to run: only what the command
            line names is run.
    """
    return [_of_target(checked, where) for checked in results.targets]


def _of_target(checked: Checked, where: str) -> RecordedFindings:
    texts = [
        json.dumps(violation.document)
        for violation in checked.violations
        if violation.document is not None
    ]
    documents = tuple(loads_document(text, where) for text in dict.fromkeys(texts))
    num_without = len(checked.violations) - len(texts)
    return RecordedFindings(_choice(checked), documents, num_without, _code_named(checked))


def _choice(checked: Checked) -> TargetChoice:
    """The target, as far as a file may name it: the reference, or a release of the index."""
    faults = faults_of(checked.target)
    if faults is not None:
        return TargetChoice("reference", faults=faults)
    return TargetChoice("vllm", checked.release)


def _code_named(checked: Checked) -> str | None:
    """The options that run what the file names, where that is code of its own."""
    if checked.source is None and checked.scheduler_class is None:
        return None
    words = ["--target", "vllm"]
    words += ["--release", str(checked.release)] if checked.release else []
    words += ["--source", str(checked.source)] if checked.source else []
    words += ["--scheduler-class", checked.scheduler_class] if checked.scheduler_class else []
    return shlex.join(words)
