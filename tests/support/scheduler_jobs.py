"""A job that names classes as schedulers, for a process of its own."""

from __future__ import annotations

from impl.vllm.launch.source import Source
from impl.vllm.runs.target import require_scheduler
from proofs.jobs.processes import ShouldStop
from proofs.jobs.progress import ReportProgress
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
            require_scheduler(source, name)
            refused[name] = "a scheduler"
        except InputError as error:
            refused[name] = str(error)
    return refused
