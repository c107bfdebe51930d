"""Run a file once more on the target that options name; ``replay`` and ``report`` share it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from impl.target import Runner
from impl.tensors import TensorSettings
from proofs.drive.examples import Replay
from proofs.drive.jobs import ReplayJob, replay_on_vllm, warm_up_of
from proofs.drive.origin import Origin, vllm_origin
from proofs.drive.replay import Replayed, judge_recorded, replay_case, replay_on_loop
from proofs.jobs.processes import run_jobs
from proofs.jobs.terminal import interrupts
from proofs.results import document as results_file
from proofs.results.document import KINDS, Results
from proofs.run.targets import TargetChoice
from spec.errors import InputError
from spec.functions import case_files
from spec.record import document as loop_files
from spec.record.json_document import json_data, read_text
from spec.verdict import Verdict

AnyDocument: TypeAlias = case_files.Document | loop_files.LoopDocument


def load_document(path: Path) -> AnyDocument:
    """Read a function-level case, a scenario or a trace.

    Raises:
        InputError: the file cannot be read or is none of them.
    """
    return loads_document(read_text(path), str(path))


def load_any(path: Path) -> AnyDocument | Results:
    """Read a function-level case, a scenario, a trace, or what a command wrote with ``--json``.

    Raises:
        InputError: the file cannot be read or is none of them.
    """
    text = read_text(path)
    kind = _stated_kind(text, str(path))
    return results_file.loads(text, str(path)) if kind in KINDS else loads_document(text, str(path))


def loads_document(text: str, where: str) -> AnyDocument:
    """Read the text of a function-level case, a scenario or a trace.

    Raises:
        InputError: it is none of them.
    """
    kind = _stated_kind(text, where)
    if kind == "function-case":
        return case_files.loads(text, where)
    if kind in KINDS:
        raise InputError(f"{where}: holds the results of {kind}; `residency report` reads them")
    return loop_files.loads(text, where)


def _stated_kind(text: str, where: str) -> object:
    """What the file says that it is; ``None`` where that is for the reader of documents to say."""
    raw = json_data(text, where)
    if not isinstance(raw, dict):
        return None
    if "kind" not in raw and "schema" in raw:
        raise InputError(
            f'{where}: does not say what it is; it needs a "kind": "function-case", "scenario", '
            '"trace", or one of what --json writes (write a file of an earlier version again)'
        )
    return raw.get("kind")


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
        from impl.targets.functions import ReferenceTarget

        if settings is None:
            raise InputError("a function-level case needs tensors; use --device cpu")
        functions = ReferenceTarget(faults=choice.faults)
        found = replay_case(document, functions, runners, settings)
        return Replay(Origin(functions.name, faults=choice.faults), None, tuple(found))
    from impl.targets.runs import ReferenceLoop

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
        for answer in run_jobs(
            replay_on_vllm, [job], [name], should_stop=interrupted, warm_up_of=warm_up_of
        ):
            if answer.refused is not None:
                raise InputError(answer.refused)
            if answer.value is None:
                return [Replayed(runner, Verdict.ERROR, answer.failed) for runner in job.runners]
            return answer.value
    raise KeyboardInterrupt
