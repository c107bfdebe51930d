"""What the options of a command name: the reference, a release, or a checkout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from impl.vllm.launch.fetch import fetch
from impl.vllm.launch.source import Source, from_directory
from proofs.describe.visible import error_line, print_lines
from spec.errors import InputError


def named_vllms(
    releases: Sequence[str],
    source: Path | None,
    scheduler_class: str | None = None,
    *,
    shows_progress: bool = True,
) -> tuple[VllmName, ...]:
    """The vLLMs that the options name, each once; releases are fetched when they are not cached.

    Args:
        releases: releases, such as ``0.33.0``; looked at only without a folder.
        source: a checkout, a site-packages folder or the package itself.
        scheduler_class: ``package.module:Class``; ``None`` for the vLLM's own.
        shows_progress: whether a download shows a bar on a terminal.

    Raises:
        InputError: an unknown release, no network, or a folder without vLLM.
    """
    if source is not None:
        return (VllmName(_of_folder(source), scheduler_class),)
    named = (VllmName(fetch(release, shows_progress), scheduler_class) for release in releases)
    return tuple(dict.fromkeys(named))


def vllm_of(release_or_folder: str, scheduler_class: str | None = None) -> VllmName:
    """The vLLM that an argument names: a folder where there is one of that name, or a release.

    Args:
        release_or_folder: what was given.
        scheduler_class: scheduler of a folder; a release runs with its own.

    Raises:
        InputError: a path to nothing, a folder without vLLM, an unknown release, or no network.
    """
    folder = Path(release_or_folder)
    if folder.is_dir():
        return VllmName(_of_folder(folder), scheduler_class)
    if folder.suffix == ".json" or len(folder.parts) > 1:
        raise InputError(f"{release_or_folder}: no such file or folder")
    return VllmName(fetch(release_or_folder))


def _of_folder(folder: Path) -> Source:
    """The vLLM of a folder; what of it its digest leaves out is said."""
    source = from_directory(folder)
    for what in source.left_out:
        print_lines(error_line(f"{source.package.resolve()}: {what}; it was not read"), err=True)
    return source


def compared_with(against: str, scheduler_class: str | None) -> VllmName | Path:
    """What ``--against`` names: a folder with a vLLM, a file of results, or a release.

    A release runs with its own scheduler; a folder with the class named, as an earlier state of the
    same fork has it.

    Raises:
        InputError: none of them.
    """
    path = Path(against)
    return path if path.is_file() else vllm_of(against, scheduler_class)


TargetName: TypeAlias = Literal["reference", "vllm", "recorded"]


@dataclass(frozen=True)
class TargetChoice:
    """What options name.

    Attributes:
        name: our reference, a real vLLM, or nothing: a trace is judged as it was recorded.
        source: its folder instead.
        scheduler_class: scheduler in place of vLLM's own.
        faults: switches of the reference that are on.
    """

    name: TargetName
    release: str | None = None
    source: Path | None = None
    scheduler_class: str | None = None
    faults: tuple[str, ...] = ()

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
class NamedTargets:
    """What the options of one command name; every command that runs something takes the same.

    Attributes:
        name: as of :class:`TargetChoice`; ``None`` where it was not given.
        scheduler_class: scheduler in place of vLLM's own.
        faults: switches of the reference that are on.
    """

    name: TargetName | None = None
    releases: tuple[str, ...] = ()
    sources: tuple[Path, ...] = ()
    scheduler_class: str | None = None
    faults: tuple[str, ...] = ()

    def choices(self) -> list[TargetChoice]:
        """The targets, in the order of reference, releases and folders; none where none is named.

        Raises:
            InputError: options that do not fit each other.
        """
        vllms = [TargetChoice("vllm", r, None, self.scheduler_class) for r in self.releases]
        vllms += [TargetChoice("vllm", None, s, self.scheduler_class) for s in self.sources]
        if not vllms and (self.name == "vllm" or self.scheduler_class is not None):
            given = "--target vllm" if self.name == "vllm" else "--scheduler-class"
            raise InputError(f"{given} needs one of --release R and --source DIR")
        if self.faults and (vllms or self.name == "recorded"):
            raise InputError("--fault breaks the reference; it cannot be used with another target")
        if self.name in (None, "vllm") and vllms:
            return vllms
        if self.name is None and not self.faults:
            return []
        return [TargetChoice(self.name or "reference", faults=self.faults), *vllms]

    def vllms(self) -> tuple[VllmName, ...]:
        """The vLLMs, each once, fetched where they are not cached.

        Raises:
            InputError: an unknown release, no network, or a folder without vLLM.
        """
        named = (choice.vllm() for choice in self.choices())
        return tuple(dict.fromkeys(vllm for vllm in named if vllm is not None))

    def single(self) -> TargetChoice:
        """The one target; the reference where none is named.

        Raises:
            InputError: options that do not fit each other, or that name several targets.
        """
        found = self.choices() or [TargetChoice("reference")]
        if len(found) > 1 and self.name in ("reference", "recorded"):
            raise InputError(
                "--release, --source and --scheduler-class name a vLLM; add --target vllm"
            )
        if len(found) > 1:
            raise InputError("the options name several vLLMs; give one --release or one --source")
        return found[0]


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
