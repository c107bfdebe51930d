"""What a run on GitHub Actions shows: annotations, and the summary of its step.

Both depend on the environment alone (``GITHUB_ACTIONS``, ``GITHUB_STEP_SUMMARY``), so that every
command does it in the same way and none needs an option.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from proofs.describe.visible import print_lines, visible
from proofs.describe.words import counted
from proofs.report.text.markup import code_span, fitted, prose, table
from proofs.results.blame import SourcePlace
from proofs.results.violation import Violation

MOST_ANNOTATIONS = 10
"""Errors of a step that the site shows; the summary tells the rest."""

SUMMARY_LIMIT = 1024 * 1024
"""Bytes that a step's summary may have."""

_LONGEST_MESSAGE = 1500


def announce(
    title: str,
    violations: Sequence[Violation],
    sections: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> None:
    """Print annotations and append to the step's summary, where the environment asks for them.

    Args:
        title: what was done, on one line.
        violations: what was found.
        sections: what else is told of them, as Markdown, one each.
        environment: variables; those of the process when not given.
    """
    variables = os.environ if environment is None else environment
    if variables.get("GITHUB_ACTIONS") == "true":
        for line in annotation_lines(violations, variables.get("GITHUB_WORKSPACE")):
            click.echo(line)
    append_summary(summary(title, violations, sections), variables)


def append_summary(sections: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    """Append to the step's summary where there is one; what cannot be written is no failure.

    Args:
        sections: Markdown, the most important first.
        environment: variables; those of the process when not given.
    """
    file = (os.environ if environment is None else environment).get("GITHUB_STEP_SUMMARY")
    if not file:
        return
    path = Path(file)
    try:
        taken = path.stat().st_size if path.exists() else 0
        note = "More was found; the summary is full, the report has it all."
        text = "\n" + fitted(sections, SUMMARY_LIMIT - taken - 1, note)
        if taken + len(text.encode()) > SUMMARY_LIMIT:
            return
        with path.open("a", encoding="utf-8") as written:
            written.write(text)
    except OSError as error:
        print_lines(f"{path}: the summary cannot be written ({error.strerror})", err=True)


def annotation_lines(violations: Sequence[Violation], workspace: str | None) -> list[str]:
    """Workflow commands that mark each new violation at its line, as many as are shown.

    Args:
        violations: what was found.
        workspace: folder of the checkout; only a file below it can be marked.
    """
    new = [violation for violation in violations if violation.is_new]
    lines = []
    for violation in new[:MOST_ANNOTATIONS]:
        properties = {**_at(violation.place, workspace), "title": _title(violation)}
        written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
        lines.append(f"::error {written}::{_data(_message(violation))}")
    return lines


def _title(violation: Violation) -> str:
    return visible(f"{violation.claim} is violated [{violation.fingerprint}]", 200)


def _message(violation: Violation) -> str:
    """Each part on a line of its own; within a part nothing ends a line."""
    parts = (
        f"{violation.target}: {violation.mechanism}",
        f"observed: {violation.observed}",
        f"expected: {violation.expected}",
        f"smallest: {violation.smallest}",
    )
    return "\n".join(visible(part, _LONGEST_MESSAGE) for part in parts)


def _at(place: SourcePlace | None, workspace: str | None) -> dict[str, str]:
    if place is None or not workspace:
        return {}
    path = place.root / place.file
    try:
        file = path.relative_to(Path(workspace).resolve())
    except ValueError:
        return {}
    return {"file": file.as_posix(), "line": str(place.line)}


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def summary(title: str, violations: Sequence[Violation], sections: Sequence[str] = ()) -> list[str]:
    """The parts of a step's summary, the most important first."""
    head = f"## {prose(title)}"
    new = [violation for violation in violations if violation.is_new]
    old = [violation for violation in violations if not violation.is_new]
    if not violations:
        return [head, "No claim is violated."]
    parts = [head]
    if new:
        parts.append(f"**{counted(len(new), 'violation')}.**")
        if len(new) > MOST_ANNOTATIONS:
            parts[-1] += f" The first {MOST_ANNOTATIONS} are marked in the source, all are here:"
        parts.append(_table(new))
    else:
        parts.append("No claim is violated that held before.")
    if old:
        parts += [f"There before: {counted(len(old), 'violation')}.", _table(old)]
    return [*parts, *sections]


def _table(violations: Sequence[Violation]) -> str:
    rows = (
        (
            code_span(violation.claim, 60, in_table=True),
            prose(violation.target, 120, in_table=True),
            prose(violation.mechanism, 300, in_table=True),
            code_span(violation.smallest, 200, in_table=True),
            code_span(violation.fingerprint, 40, in_table=True),
        )
        for violation in violations
    )
    return table(("claim", "on", "fault", "smallest known", "fingerprint"), rows)
