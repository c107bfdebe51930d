"""How checks of real vLLMs are shown: what is patched, what is new, where behaviour changed."""

from __future__ import annotations

from typing import Any

from impl.vllm.launch.load import patches_for
from proofs.describe.scenarios import describe_scenario
from proofs.describe.visible import print_lines
from proofs.describe.words import counted
from proofs.drive.origin import vllm_origin
from proofs.releases.against import Compared, behaviour_to_json
from proofs.releases.replay_text import describe_step, shortened
from proofs.releases.search import VllmReport
from proofs.results.outcome import Checked, Outcome
from proofs.search.runs.search_text import checked_runs, print_loop_report
from spec.verdict import Verdict


def print_vllm_report(report: VllmReport) -> None:
    """Print what was found on one vLLM, and how that relates to what it was compared with."""
    if report.searched is None:
        print_lines(f"ERROR {report.vllm.source.name}: {report.refused or report.failed}", err=True)
        return
    print_loop_report(report.searched.report)
    if report.compared is not None:
        _print_compared(report, report.compared)


def print_patches() -> None:
    """Print what is not as the release has it, and why."""
    print_lines("\nNot as the release has it:")
    for patch in patches_for("loop"):
        print_lines(f"  {patch.where}: {patch.change} ({patch.reason})")


def _print_compared(report: VllmReport, compared: Compared) -> None:
    assert report.searched is not None
    print_lines(f"\nAgainst {compared.earlier}:")
    findings = {
        example.finding.fingerprint: example.finding
        for example in report.searched.report.counterexamples
    }
    for name, fingerprints in (("NEW", compared.new), ("already there", compared.there)):
        for fingerprint in fingerprints:
            finding = findings[fingerprint]
            print_lines(f"  {name}: {finding.claim} [{fingerprint}] {finding.mechanism}")
    for gone in compared.fixed:
        print_lines(f"  fixed: {gone.claim} [{gone.fingerprint}] {gone.mechanism}")
    if not (compared.new or compared.there or compared.fixed):
        print_lines("  no finding on either")
    print_lines(f"  {_behaviour(compared)}")
    if compared.difference is not None and compared.traces is not None:
        for line in _difference(compared):
            print_lines(f"  {line}")


def _behaviour(compared: Compared) -> str:
    if not compared.num_compared:
        return "behaviour: not compared, as the two did not run the same scenarios"
    if compared.parting is None:
        return f"behaviour: the same in {counted(compared.num_compared, 'run')}"
    parting = compared.parting
    text = (
        f"behaviour: {compared.num_differing} of {counted(compared.num_compared, 'run')} differ, "
        f"first scenario {parting.number} on {parting.runner}, "
    )
    text += "where a claim is broken" if parting.is_broken else "where no claim is broken"
    if compared.traces is None:
        text += "; give a release or a folder to --against to see how"
    return text


def _difference(compared: Compared) -> list[str]:
    assert compared.difference is not None
    assert compared.traces is not None
    before, now = compared.traces
    found = compared.difference
    lines = [f"scenario: {describe_scenario(now.scenario)}"]
    if not found.place:
        lines.append(f"they differ in length: {found.first} before, {found.second} now")
        return lines
    step = describe_step(now.steps[found.step])
    lines.append(f"first in step {found.step} ({step}): {found.place}")
    lines.append(f"  {before.target}: {shortened(found.first)}")
    lines.append(f"  {now.target}: {shortened(found.second)}")
    return lines


def checked_vllm(report: VllmReport) -> Checked:
    """A search of one vLLM, as files and other tools are told of it."""
    source = report.vllm.source
    named = vllm_origin(report.vllm).named
    if report.searched is None:
        reason = report.refused or report.failed or "not searched"
        failure = Outcome("every claim", "the loop", Verdict.ERROR, reason=reason)
        return Checked(source.name, (failure,), **named, details={"error": reason})
    details: dict[str, Any] = {
        "patches": [
            {"where": patch.where, "change": patch.change, "reason": patch.reason}
            for patch in patches_for("loop")
        ]
    }
    if report.searched.behaviour is not None:
        details["behaviour"] = behaviour_to_json(report.searched.behaviour)
    there: tuple[str, ...] = ()
    if report.compared is not None:
        there = report.compared.there
        details["against"] = _compared_to_json(report.compared)
    return checked_runs(
        report.searched.report, source.package, there=there, details=details, **named
    )


def _compared_to_json(compared: Compared) -> dict[str, Any]:
    data: dict[str, Any] = {
        "target": compared.earlier,
        "new": list(compared.new),
        "there": list(compared.there),
        "fixed": [
            {"claim": f.claim, "mechanism": f.mechanism, "fingerprint": f.fingerprint}
            for f in compared.fixed
        ],
        "runs_compared": compared.num_compared,
        "runs_differing": compared.num_differing,
    }
    if compared.parting is not None:
        parting: dict[str, Any] = {
            "scenario": compared.parting.number,
            "runner": compared.parting.runner,
            "claim_broken": compared.parting.is_broken,
        }
        if compared.difference is not None:
            parting |= {
                "step": compared.difference.step,
                "place": compared.difference.place,
                "before": compared.difference.first,
                "now": compared.difference.second,
            }
        data["first_difference"] = parting
    return data
