"""What other tools are told of the verdict on settings."""

from __future__ import annotations

from impl.vllm.launch.source import cache_folder, unpacked
from proofs.describe.scenarios import describe_scenario
from proofs.report.machines.blame import place_of_loop_claim
from proofs.report.machines.junit import Outcome
from proofs.report.machines.publish import Checked, MachineFiles, publish, text_of
from proofs.report.machines.violation import Violation
from proofs.settings.judge import Judgement, Setup
from proofs.settings.stuck.kinds import Stop
from proofs.settings.stuck.layouts import as_scenario
from spec.errors import InputError
from spec.record.run_findings import fingerprint
from spec.verdict import Verdict

_PART = "these settings"


def publish_judgement(setup: Setup, judgement: Judgement, files: MachineFiles) -> Verdict:
    """Tell machines of the verdict, and write a report on each prompt that stalls.

    Args:
        setup: settings and rules.
        judgement: what the theorems say of them.
        files: where to write; its folder gets the reports.

    Returns:
        The verdict: ``ERROR`` where the engine does not do what the theorems say.

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
    told = [line for violation in violations for line in text_of(violation)]
    told += [unknown.sentence for unknown in judgement.unknowns if not violations]
    checked = Checked(
        _target(setup),
        violations,
        (Outcome("no-stall", _PART, verdict, tuple(told)),),
        setup.release,
    )
    publish(f"{_target(setup)}: settings", [checked], files, sections)
    return verdict


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
    )
