"""Where a result comes from: the target, its release or folder, and the seed."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from proofs.run.targets import VllmName


@dataclass(frozen=True)
class Origin:
    """What was run, and where it came from.

    Attributes:
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
    def named(self) -> dict[str, Any]:
        """What names a vLLM in a file of results."""
        return {
            "release": self.release,
            "source": None if self.source is None else str(self.source),
            "digest": self.digest,
            "scheduler_class": self.scheduler_class,
        }

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
