"""What other tools are told of the verdict on settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from impl.vllm.launch.source import cache_folder, unpacked
from proofs.describe.scenarios import describe_scenario
from proofs.results.blame import place_of_loop_claim
from proofs.results.document import results_of
from proofs.results.outcome import Checked, Outcome
from proofs.results.publish import MachineFiles, publish
from proofs.results.violation import Violation
from proofs.settings.judge import Judgement, Setup
from proofs.settings.stuck.kinds import Stop
from proofs.settings.stuck.layouts import as_scenario
from spec.errors import InputError
from spec.record.document import dumps_scenario
from spec.record.run_findings import fingerprint
from spec.verdict import Verdict

_PART = "these settings"


def publish_judgement(
    setup: Setup, judgement: Judgement, files: MachineFiles, details: Mapping[str, Any]
) -> int:
    """Write the files asked for, and a report on each prompt that stalls.

    Args:
        setup: settings and rules.
        judgement: what the theorems say of them.
        files: where to write; its folder gets the reports.
        details: all that is known, as JSON data.

    Returns:
        The exit code: that of ``ERROR`` where the engine does not do what the theorems say.

    Raises:
        InputError: a file cannot be written, or a report is asked for and the release cannot run.
    """
    verdict = judgement.verdict
    sections: list[str] = []
    if files.folder is not None and judgement.stops:
        # Everything that runs an engine takes seconds to import.
        from proofs.dossiers.stops import report_stops

        release = require_release(setup)
        sections, is_shown = report_stops(setup.settings, judgement.stops, release, files.folder)
        verdict = verdict if is_shown else Verdict.ERROR
    violations = tuple(_violation(setup, stop) for stop in judgement.stops)
    reasons = [unknown.sentence for unknown in judgement.unknowns if not violations]
    outcome = Outcome(
        "no-stall",
        _PART,
        verdict,
        fingerprints=tuple(violation.fingerprint for violation in violations),
        reason="\n".join(reasons) or None,
    )
    checked = Checked(_target(setup), (outcome,), violations, setup.release)
    settings = {name: details[name] for name in ("settings", "rules", "not_looked_at")}
    rest = {name: value for name, value in details.items() if name not in settings}
    results = results_of("lint-config", [checked], settings=settings, details=rest)
    return publish(f"{_target(setup)}: settings", results, files, sections)


def require_release(setup: Setup) -> str:
    """The release whose engine a report shows.

    Raises:
        InputError: the rules are nobody's, so that no engine follows them.
    """
    if setup.release is None:
        raise InputError(
            "--report runs the prompt on a release, and these rules are of none; leave out "
            "--margin, --cut-shift, --whole-cut-shift and --reserves, or write it with -o"
        )
    return setup.release


def _target(setup: Setup) -> str:
    return f"vllm {setup.release}" if setup.release else "rules of no release"


def _violation(setup: Setup, stop: Stop) -> Violation:
    source = unpacked(cache_folder(), setup.release) if setup.release else None
    place = None if source is None else place_of_loop_claim(source.package, "no-stall", ())
    return Violation(
        "no-stall",
        stop.name,
        fingerprint("no-stall", stop.name),
        _target(setup),
        stop.sentence,
        f"no prompt stops the engine; theorems: {', '.join(stop.theorems)}",
        describe_scenario(as_scenario(stop.layout, setup.settings)),
        place,
        document=json.loads(dumps_scenario(as_scenario(stop.layout, setup.settings))),
    )
