"""What the options of a command name: the reference, a release, or a checkout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from impl.vllm.launch.fetch import fetch
from impl.vllm.launch.source import Source, from_directory
from spec.errors import InputError


def named_vllms(
    releases: Sequence[str], source: Path | None, scheduler_class: str | None
) -> tuple[VllmName, ...]:
    """The vLLMs that the options name, each once; releases are fetched when they are not cached.

    Raises:
        InputError: an unknown release, no network, or a folder without vLLM.
    """
    if source is not None:
        return (VllmName(from_directory(source), scheduler_class),)
    named = (VllmName(fetch(release), scheduler_class) for release in releases)
    return tuple(dict.fromkeys(named))


def compared_with(against: str, scheduler_class: str | None) -> VllmName | Path:
    """What ``--against`` names: a folder with a vLLM, a file of results, or a release.

    A release runs with its own scheduler; a folder with the class named, as an earlier state of the
    same fork has it.

    Raises:
        InputError: none of them.
    """
    path = Path(against)
    if path.is_dir():
        return VllmName(from_directory(path), scheduler_class)
    if path.is_file():
        return path
    if path.suffix == ".json" or len(path.parts) > 1:
        raise InputError(f"{against}: no such file or folder")
    return VllmName(fetch(against))


TargetName: TypeAlias = Literal["reference", "vllm", "recorded"]


@dataclass(frozen=True)
class TargetChoice:
    """What options name.

    Attributes:
        name: our reference, a real vLLM, or nothing: a trace is judged as it was recorded.
        release: release of the vLLM.
        source: its folder instead.
        scheduler_class: scheduler in place of vLLM's own.
        faults: switches of the reference that are on.
    """

    name: TargetName
    release: str | None = None
    source: Path | None = None
    scheduler_class: str | None = None
    faults: tuple[str, ...] = ()

    def refuse_contradictions(self) -> None:
        """Check that the options fit each other.

        Raises:
            InputError: what does not fit, and what to give instead.
        """
        names_a_vllm = (self.release, self.source, self.scheduler_class) != (None, None, None)
        if self.name == "vllm":
            if (self.release is None) == (self.source is None):
                raise InputError("--target vllm needs one of --release R and --source DIR")
            if self.faults:
                raise InputError(
                    "--fault breaks the reference; it cannot be used with --target vllm"
                )
        elif self.faults and self.name == "recorded":
            raise InputError("--fault breaks the reference; a recorded run is not run again")
        elif names_a_vllm:
            raise InputError(
                "--release, --source and --scheduler-class name a vLLM; add --target vllm"
            )

    def vllm(self) -> VllmName | None:
        """The vLLM, fetched where it is not cached; ``None`` for the others.

        Raises:
            InputError: an unknown release, no network, or a folder without vLLM.
        """
        if self.name != "vllm":
            return None
        releases = [self.release] if self.release else []
        return named_vllms(releases, self.source, self.scheduler_class)[0]


@dataclass(frozen=True)
class VllmName:
    """Which vLLM, and which of its schedulers.

    Attributes:
        source: a release or a directory.
        scheduler_class: ``package.module:Class``; ``None`` for the release's own.
    """

    source: Source
    scheduler_class: str | None = None


_REFERENCE = "reference"


def faults_of(target: str) -> tuple[str, ...] | None:
    """The switches in the name of a reference target; ``None`` for another target."""
    name, *faults = target.split(" ")
    if name != _REFERENCE or not all(fault.startswith("+") for fault in faults):
        return None
    return tuple(fault.removeprefix("+") for fault in faults)
