"""Where a run comes from, and how it is made again."""

from __future__ import annotations

import platform
import shlex
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from proofs.loop.jobs import VllmName
from proofs.report.links import Links
from spec.loop.findings import LoopFinding


@dataclass(frozen=True)
class Origin:
    """What was run, and where it came from.

    Attributes:
        target: name of the target.
        release: release of the vLLM; ``None`` for a folder and for the reference.
        source: folder that was given instead.
        scheduler_class: scheduler in place of vLLM's own.
        faults: switches of the reference that are on.
        seed: of the search that found it; ``None`` where nothing was searched.
        digest: of the source that was checked.
        package: the folder ``vllm`` of that source; ``None`` for the reference.
        recorded: whether the run was only judged, and whatever made it is not at hand.
        by_source_proof: whether a proof of a source made the run by itself, without the engine.
    """

    target: str
    release: str | None = None
    source: Path | None = None
    scheduler_class: str | None = None
    faults: tuple[str, ...] = ()
    seed: int | None = None
    digest: str | None = None
    package: Path | None = None
    recorded: bool = False
    by_source_proof: bool = False

    @property
    def is_vllm(self) -> bool:
        """Whether a vLLM was run."""
        return self.package is not None

    @property
    def options(self) -> tuple[str, ...]:
        """The words that name the target on a command line."""
        if self.recorded:
            return ("--target", "recorded")
        if not self.is_vllm:
            faults = (word for fault in self.faults for word in ("--fault", fault))
            return ("--target", "reference", *faults)
        words = ["--target", "vllm"]
        words += ["--release", self.release] if self.release else ["--source", str(self.source)]
        if self.scheduler_class is not None:
            words += ["--scheduler-class", self.scheduler_class]
        return tuple(words)

    @property
    def versions(self) -> tuple[tuple[str, str], ...]:
        """Versions of what took part in the run."""
        return (
            ("residency", version("residency")),
            ("Python", platform.python_version()),
            ("torch", version("torch")),
        )


def vllm_origin(vllm: VllmName, seed: int | None = None) -> Origin:
    """The origin of runs of a vLLM.

    Args:
        vllm: which one.
        seed: of the search.
    """
    source = vllm.source
    package = source.package.resolve()
    return Origin(
        target=source.name,
        release=source.release,
        source=None if source.release is not None else package.parent,
        scheduler_class=vllm.scheduler_class,
        seed=seed,
        digest=source.digest,
        package=package,
    )


def reproduce(origin: Origin, finding: LoopFinding, runner: str, links: Links) -> tuple[str, ...]:
    """Lines of shell that show the violation again, to be run in the report's folder.

    Args:
        origin: what was run.
        finding: what was found.
        runner: the worker's order and gathers.
        links: names of the files.
    """
    lines = []
    if links.test is not None:
        path = f"PYTHONPATH={_import_path(origin)} " if origin.is_vllm else ""
        lines.append(f"{path}python -m pytest {shlex.quote(links.test)}")
    file = links.trace if origin.recorded else links.scenario
    words = ["residency", "replay", file, *origin.options]
    if not origin.recorded:
        words += ["--runner", "both" if finding.claim == "runners-agree" else runner]
    return (*lines, shlex.join(words))


def environment_of(origin: Origin, links: Links) -> str:
    """Where :func:`reproduce` is to be run, if the stand-alone test needs more than pytest.

    Args:
        origin: what was run.
        links: names of the files.
    """
    return "" if origin.is_vllm or links.test is None else "in this project's environment"


def _import_path(origin: Origin) -> str:
    """Shell text that yields the folder to put on the path."""
    if origin.release is not None:
        return f'"$(residency vllm fetch {shlex.quote(origin.release)})"'
    return shlex.quote(str(origin.source))
