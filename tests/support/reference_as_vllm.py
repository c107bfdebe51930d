"""The reference in the place of a vLLM: which faults it has stands in the folder that is named.

Run as a script, it is the command ``residency`` with that in place, for tests of what others call.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from impl.target import LoopTarget
from impl.targets.runs import ReferenceLoop
from proofs.jobs.processes import Answer
from proofs.run.targets import VllmName
from spec.errors import InputError, NoVerdictError

PLACES = (
    ("proofs.drive.jobs.make_target", "make"),
    ("proofs.drive.jobs.unrecognised", "all_recognised"),
    ("proofs.drive.drive.make_target", "make"),
    ("proofs.drive.drive.run_jobs", "run_here"),
    ("proofs.releases.search.run_jobs", "run_here"),
    ("proofs.report.near.rerun.run_jobs", "run_here"),
    ("proofs.drive.documents.run_jobs", "run_here"),
)
"""What is replaced, and by which function of this module."""


def write_folder(folder: Path, *faults: str) -> None:
    """Write a package ``vllm`` that says which faults the reference has in its place."""
    package = folder / "vllm"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(f'FAULTS = "{",".join(faults)}"\n')


class _Named(ReferenceLoop):
    """The reference under the name of a vLLM."""

    def __init__(self, faults: Sequence[str], name: str) -> None:
        super().__init__(faults)
        self._name = name

    @property
    def name(self) -> str:
        """The vLLM's name."""
        return self._name


def make(vllm: VllmName) -> LoopTarget:
    """The reference with the faults that the vLLM's package names."""
    text = (vllm.source.package / "__init__.py").read_text()
    found = re.search(r'FAULTS = "(.*)"', text)
    if found is None:
        raise InputError(f"{vllm.source.name}: no faults named")
    return _Named([fault for fault in found[1].split(",") if fault], vllm.source.name)


def all_recognised(target: LoopTarget) -> dict[str, str]:
    """No runner's order is unknown."""
    return {}


def run_here(
    work: Callable[..., Any],
    arguments: Sequence[Any],
    names: Sequence[str],
    report_progress: object = None,
    should_stop: Callable[[], bool] | None = None,
    **options: object,
) -> Iterator[Answer[Any]]:
    """Jobs one after the other in this process."""
    for index, argument in enumerate(arguments):
        try:
            yield Answer(index, work(argument, lambda *_: None, should_stop or (lambda: False)))
        except InputError as error:
            yield Answer(index, refused=str(error))
        except NoVerdictError as error:
            yield Answer(index, failed=str(error))


def replace_all(setattr_: Callable[[str, object], None]) -> None:
    """Put everything in place, by ``monkeypatch.setattr`` or something like it."""
    for place, name in PLACES:
        setattr_(place, globals()[name])


def _set(place: str, value: object) -> None:
    from importlib import import_module

    module, _, name = place.rpartition(".")
    setattr(import_module(module), name, value)


if __name__ == "__main__":
    from proofs.commands.main import main

    replace_all(_set)
    main(sys.argv[1:], prog_name="residency")
