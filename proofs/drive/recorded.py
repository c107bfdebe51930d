"""Recorded scenarios of known faults, and the releases between which each came or went."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.version import InvalidVersion, Version
from pydantic import TypeAdapter

from proofs.recorded import SCENARIOS
from spec.claims.texts import loop_claim
from spec.errors import InputError
from spec.record.document import ScenarioDocument, load
from spec.record.json_document import parse, read_text
from spec.record.scenario import Scenario

INDEX = "index.json"
DEFAULT_FOLDER = SCENARIOS
SCHEMA_VERSION = 1

_STRICT = {"extra": "forbid", "strict": True}


@dataclass(frozen=True)
class RecordedFault:
    """A known fault and where it is found.

    Attributes:
        scenario: name of the file with its scenario, in the folder of the index.
        claims: claims that the fault breaks on it, each of them.
        last_affected: the last release on which it shows; ``None`` where it was never looked for.
        first_good: the first release on which it does not; ``None`` while there is none.
        first_affected: the first release on which it shows, where an earlier one was seen without.
    """

    name: str
    scenario: str
    claims: tuple[str, ...]
    last_affected: str | None = None
    first_good: str | None = None
    first_affected: str | None = None

    __pydantic_config__ = _STRICT

    def expected(self, release: str | None) -> bool | None:
        """Whether it should show on a release; ``None`` where the record does not say."""
        if release is None or self.last_affected is None:
            return None
        number, last = Version(release), Version(self.last_affected)
        if self.first_good is not None and number >= Version(self.first_good):
            return False
        first = last if self.first_affected is None else Version(self.first_affected)
        return True if first <= number <= last else None


@dataclass(frozen=True)
class WithoutScenario:
    """A known fault that no scenario of the loop shows on a release covered, and why."""

    name: str
    reason: str

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Index:
    """What a folder of recorded scenarios holds."""

    schema: int
    faults: tuple[RecordedFault, ...]
    without_scenario: tuple[WithoutScenario, ...] = ()

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Recorded:
    """The index and its scenarios.

    Attributes:
        index: what the folder holds.
        scenarios: by name of the file.
        digest: of all files; changes when anything does.
    """

    index: Index
    scenarios: dict[str, Scenario]
    digest: str

    def releases(self) -> tuple[str, ...]:
        """Every release at which a fault comes or goes, in order."""
        named = {
            release
            for fault in self.index.faults
            for release in (fault.first_affected, fault.last_affected, fault.first_good)
            if release is not None
        }
        return tuple(sorted(named, key=Version))


@cache
def _adapter() -> TypeAdapter[Index]:
    return TypeAdapter(Index)


def load_recorded(folder: Path) -> Recorded:
    """Read the index of a folder and its scenarios.

    Raises:
        InputError: there is no index, or something in it is wrong.
    """
    path = folder / INDEX
    text = read_text(path)
    index = parse(text, _adapter(), SCHEMA_VERSION, str(path), "list of recorded scenarios")
    digest = hashlib.sha256(text.encode())
    scenarios: dict[str, Scenario] = {}
    for fault in index.faults:
        where = f"{path}, {fault.name}"
        if not fault.claims:
            raise InputError(f"{where}: names no claim")
        for claim in fault.claims:
            loop_claim(claim)
        for release in (fault.first_affected, fault.last_affected, fault.first_good):
            _require_version(release, where)
        if fault.scenario in scenarios:
            continue
        file = folder / fault.scenario
        if file.resolve().parent != folder.resolve():
            raise InputError(f"{where}: {fault.scenario} lies outside the folder")
        document = load(file)
        if not isinstance(document, ScenarioDocument):
            raise InputError(f"{file}: holds a trace; a recorded fault needs a scenario")
        digest.update(file.read_bytes())
        scenarios[fault.scenario] = document.scenario
    return Recorded(index, scenarios, digest.hexdigest())


def _require_version(release: str | None, where: str) -> None:
    try:
        Version(release or "0")
    except InvalidVersion:
        raise InputError(f"{where}: {release!r} is no release") from None
