"""Run a file once more on the target that options name; ``replay`` and ``report`` share it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from impl.target import RUNNERS, Runner
from impl.tensors import TensorSettings
from proofs.loop.jobs import ReplayJob, VllmName, replay_on_vllm
from proofs.loop.processes import run_jobs
from proofs.loop.replay import BOTH, Replayed, judge_recorded, replay_case, replay_on_loop
from proofs.loop_check_command import named_vllms
from proofs.report.checked import checked_replay
from proofs.report.origin import Origin, vllm_origin
from proofs.report.publish import Checked
from proofs.search.loop.results import LoopCounterexample
from proofs.terminal import interrupts
from spec import trace as case_files
from spec.errors import InputError
from spec.json_document import read_text
from spec.loop import document as loop_files
from spec.loop.findings import LoopFinding
from spec.verdict import Verdict

AnyDocument: TypeAlias = case_files.Document | loop_files.LoopDocument
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
class Replay:
    """A file that was run.

    Attributes:
        origin: what it was run on.
        vllm: the vLLM, where it is one.
        replayed: what became of each part or runner.
    """

    origin: Origin
    vllm: VllmName | None
    replayed: tuple[Replayed, ...]

    @property
    def target(self) -> str:
        """Name of the target."""
        return self.origin.target

    @property
    def examples(self) -> tuple[LoopCounterexample, ...]:
        """Each violation by a run, once, with the runners that show it."""
        return examples_of(self.replayed)

    @property
    def checked(self) -> Checked:
        """What became of it, as machines are told."""
        origin = self.origin
        return checked_replay(origin.target, self.replayed, origin.package, origin.release)


def load_any(path: Path) -> AnyDocument:
    """Read a function-level case, a scenario or a trace.

    Raises:
        InputError: the file cannot be read or is none of them.
    """
    return loads_any(read_text(path), str(path))


def loads_any(text: str, where: str) -> AnyDocument:
    """Read the text of a function-level case, a scenario or a trace.

    Raises:
        InputError: it is none of them.
    """
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raw = None  # What is wrong with it is for the reader of documents to say.
    if isinstance(raw, dict) and "case" in raw:
        return case_files.loads(text, where)
    return loop_files.loads(text, where)


def kind_of(document: AnyDocument) -> str:
    """What the file holds, in a word or two."""
    if isinstance(document, case_files.Document):
        return f"{document.case.kind} case"
    return document.kind


def run_document(
    document: AnyDocument,
    choice: TargetChoice,
    runners: Sequence[Runner],
    settings: TensorSettings | None,
    max_passes: int,
) -> Replay:
    """Run what a file holds on the target, or judge it as it was recorded.

    Args:
        document: what the file holds.
        choice: what to run it on.
        runners: which runners gather.
        settings: device, dtype and hidden size; ``None`` runs a scenario without tensors.
        max_passes: passes after which a run is given up.

    Raises:
        InputError: the target cannot be loaded, or cannot be given such a file.
        KeyboardInterrupt: it was interrupted.
    """
    if choice.name == "recorded":
        return _judge(document)
    vllm = choice.vllm()
    if vllm is not None:
        job = ReplayJob(vllm, document, tuple(runners), settings, max_passes)
        return Replay(vllm_origin(vllm), vllm, tuple(_run_vllm(job)))
    if isinstance(document, case_files.Document):
        from impl.reference.target import ReferenceTarget

        if settings is None:
            raise InputError("a function-level case needs tensors; use --device cpu")
        functions = ReferenceTarget(faults=choice.faults)
        found = replay_case(document, functions, runners, settings)
        return Replay(Origin(functions.name, faults=choice.faults), None, tuple(found))
    from impl.reference.loop_target import ReferenceLoop

    target = ReferenceLoop(faults=choice.faults)
    found = replay_on_loop(document, target, runners, settings, max_passes)
    return Replay(Origin(target.name, faults=choice.faults), None, tuple(found))


def _judge(document: AnyDocument) -> Replay:
    if isinstance(document, case_files.Document):
        raise InputError("a function-level case holds no run; give --target reference or vllm")
    judged = judge_recorded(document)
    assert judged.trace is not None
    return Replay(Origin(judged.trace.target, recorded=True), None, (judged,))


def _run_vllm(job: ReplayJob) -> list[Replayed]:
    """What became of each part or runner, in a process of its own."""
    name = job.vllm.source.name
    with interrupts() as interrupted:
        for answer in run_jobs(replay_on_vllm, [job], [name], should_stop=interrupted):
            if answer.refused is not None:
                raise InputError(answer.refused)
            if answer.value is None:
                return [Replayed(one, Verdict.ERROR, answer.failed) for one in job.runners]
            return answer.value
    raise KeyboardInterrupt


def examples_of(replayed: Sequence[Replayed]) -> tuple[LoopCounterexample, ...]:
    """Each violation by a run, once, with the runners that show it."""
    found: dict[str, LoopCounterexample] = {}
    any_trace = next((one.trace for one in replayed if one.trace is not None), None)
    for one in replayed:
        trace = any_trace if one.part == BOTH else one.trace
        for finding in one.findings:
            if not isinstance(finding, LoopFinding) or trace is None:
                continue
            shown_by = RUNNERS if one.part == BOTH else (trace.runner,)
            known = found.get(finding.fingerprint)
            if known is not None:
                shown_by = (*known.runners, *(r for r in shown_by if r not in known.runners))
                found[finding.fingerprint] = LoopCounterexample(
                    known.finding, known.trace, shown_by
                )
            else:
                found[finding.fingerprint] = LoopCounterexample(finding, trace, shown_by)
    return tuple(found.values())
