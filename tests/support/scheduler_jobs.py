"""A job that names classes as schedulers, for a process of its own."""

from __future__ import annotations

from impl.vllm.launch.source import Source
from proofs.drive.jobs import require_scheduler
from proofs.jobs.processes import ShouldStop
from proofs.jobs.progress import ReportProgress
from proofs.run.targets import VllmName
from spec.errors import InputError


def refusals(
    source: Source, report_progress: ReportProgress, should_stop: ShouldStop
) -> dict[str, str]:
    """What is said of classes that are named as schedulers, by name."""
    refused: dict[str, str] = {}
    for name in (
        "no.such:Thing",
        "json:dumps",
        "collections:OrderedDict",
        "vllm.v1.core.sched.async_scheduler:AsyncScheduler",
    ):
        try:
            require_scheduler(VllmName(source, name))
            refused[name] = "a scheduler"
        except InputError as error:
            refused[name] = str(error)
    return refused
