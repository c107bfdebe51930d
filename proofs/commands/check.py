"""``residency check``: check the claims on a target, function by function or on its source."""

from __future__ import annotations

import click

from impl.target import FunctionTarget
from impl.tensors import TensorSettings
from impl.vllm.launch.source import Source
from proofs.commands.check_runs import check_runs, loop_check_settings
from proofs.commands.files import file_options
from proofs.commands.options import (
    claim_ids,
    claims_option,
    device_option,
    runner_option,
    target_options,
)
from proofs.drive.origin import Origin, vllm_origin
from proofs.jobs.ending import PlainCommand
from proofs.jobs.terminal import interrupts, progress_bar
from proofs.results.document import results_of
from proofs.results.publish import MachineFiles, publish
from proofs.run.targets import NamedTargets
from proofs.search.functions.check import run_check
from proofs.search.functions.check_text import checked_functions, print_report
from proofs.search.functions.parts import CheckedPart
from proofs.search.functions.results import (
    ALL_PARTS,
    DEFAULT_EXAMPLES,
    CheckReport,
    CheckSettings,
)
from proofs.search.runs.results import DEFAULT_EXAMPLES as DEFAULT_SCENARIOS
from proofs.search.runs.results import Mode
from spec.errors import InputError
from spec.verdict import INTERRUPTED_EXIT_CODE, Verdict, exit_code


@click.command("check", cls=PlainCommand)
@target_options("reference", "vllm")
@click.option(
    "--against",
    metavar="RELEASE|DIR|FILE",
    help="With --level loop: a release, a folder (such as the merge base) or an earlier --json "
    "file to compare with; only violations that it does not show exit 1.",
)
@click.option(
    "--level",
    type=click.Choice(["function", "loop", "source"]),
    default="function",
    show_default=True,
    help="Call the functions with drawn cases, run whole drawn scenarios, or prove the claims on "
    "the source.",
)
@runner_option
@click.option(
    "--mode",
    type=click.Choice(["sync", "async", "both"]),
    default="both",
    show_default=True,
    help="With --level loop: whether passes run one by one or are scheduled ahead.",
)
@claims_option
@click.option(
    "--examples",
    type=int,
    help=f"Cases drawn for each kind of function: gather, free, book, ... ({DEFAULT_EXAMPLES} when "
    f"not given), or scenarios of --level loop ({DEFAULT_SCENARIOS} when not given).",
)
@click.option(
    "--minutes",
    type=float,
    help="With --level loop: search for so many minutes instead of a number of --examples. "
    "Shrinking what is found counts; writing the pages of --report does not.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Seed of the search; the same one draws the same cases.",
)
@device_option
@file_options()
def check(
    *,
    targets: NamedTargets,
    against: str | None,
    level: str,
    runner: str,
    mode: Mode,
    claims: str | None,
    examples: int | None,
    minutes: float | None,
    seed: int,
    device: str,
    files: MachineFiles,
) -> int:
    """Check every claim and print what became of it.

    The code of a checkout runs with your rights. It does not judge itself, but what it shows of
    itself can be a lie: green is no defence against a hostile author.

    Exits 0 when all held, 1 when one is violated, 2 for wrong input, 3 when one is not settled, 4
    when one was never put to the test, 5 when nothing could be run and 130 after Ctrl-C.
    """
    _refuse_contradictions(targets, level, against, mode, examples, minutes)
    choice = None if level == "loop" else targets.single()
    files.require_writable()
    wanted = claim_ids(claims)
    if level == "loop":
        settings = loop_check_settings(runner, wanted, examples, minutes, seed, device, mode)
        return check_runs(targets, settings, against, files)
    assert choice is not None
    named = choice.vllm()
    if level == "source":
        if named is None:
            raise InputError("--level source reads the source of a vLLM; add --target vllm")
        # The solvers take seconds to import.
        from proofs.commands.prove import prove_source

        return prove_source(named.source, claims=wanted, runner=runner, files=files)
    check_settings = CheckSettings(
        parts=_parts(runner),
        claims=wanted,
        examples=DEFAULT_EXAMPLES if examples is None else examples,
        seed=seed,
        tensors=TensorSettings(device=device),
    )
    check_settings.validate()
    target = _reference(choice.faults) if named is None else _vllm_target(named.source)
    with progress_bar() as report_progress, interrupts() as interrupted:
        report = run_check(target, check_settings, report_progress, interrupted)
    print_report(report)
    origin = Origin(target.name) if named is None else vllm_origin(named)
    sections = []
    if files.folder is not None:
        from proofs.dossiers.runs import report_functions

        sections = report_functions(report.findings, files.folder, origin)
    results = results_of(
        "check-functions",
        [checked_functions(report, origin.package, **origin.named)],
        settings={"seed": seed, "examples": check_settings.examples},
        details={"interrupted": report.interrupted},
        code=_exit_code(report, runner),
    )
    return publish(f"{report.target}: the claims on its functions", results, files, sections)


def _refuse_contradictions(
    targets: NamedTargets,
    level: str,
    against: str | None,
    mode: Mode,
    examples: int | None,
    minutes: float | None,
) -> None:
    """Refuse options that would change nothing.

    Raises:
        InputError: an option that does not go with the others.
    """
    is_loop = level == "loop"
    if targets.name == "reference" and level == "source":
        raise InputError("--level source reads the source of a vLLM; add --target vllm")
    if (targets.name, level) != ("vllm", "loop") and (against or targets.scheduler_class):
        raise InputError("--against and --scheduler-class go with --target vllm --level loop")
    if mode != "both" and not is_loop:
        raise InputError("--mode goes with --level loop")
    if minutes is not None and (not is_loop or examples is not None):
        raise InputError("--minutes goes with --level loop, and without --examples")


def _parts(runner: str) -> tuple[CheckedPart, ...]:
    """Everything but the gather of the runner that was not asked for."""
    left_out: dict[str, tuple[CheckedPart, ...]] = {
        "V1": ("V2", "V1 with V2"),
        "V2": ("V1", "V1 with V2"),
        "both": (),
    }
    return tuple(part for part in ALL_PARTS if part not in left_out[runner])


def _reference(faults: tuple[str, ...]) -> FunctionTarget:
    from impl.targets.functions import ReferenceTarget

    return ReferenceTarget(faults=frozenset(faults))


def _vllm_target(vllm: Source) -> FunctionTarget:
    from impl.vllm.remote.process import RemoteProcess
    from impl.vllm.remote.targets import RemoteFunctions

    return RemoteFunctions(RemoteProcess(vllm))


def _exit_code(report: CheckReport, runner: str) -> int:
    if report.interrupted:
        return INTERRUPTED_EXIT_CODE
    nothing_ran = (r.part == runner and not r.cases for r in report.results)
    if any(nothing_ran) and Verdict.REFUTED not in report.verdicts:
        return exit_code([Verdict.ERROR])
    return exit_code(report.verdicts)
