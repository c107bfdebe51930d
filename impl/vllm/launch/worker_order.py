"""Read from a release's source what its runner does in a step, and in which order.

The source is parsed, never run. From the method that executes a step, calls of the runner's own
methods are followed, and the places that matter are noted as they come: a loop over the freed
hashes, a loop over the new requests, a call of the encoder. Whatever is not found in a form known
here makes the order unrecognised, and then nothing may be claimed of the loop.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from impl.target import Runner
from impl.vllm.launch.source import Source, parsed

Duty: TypeAlias = Literal["forget", "free", "add", "update", "payload", "encode"]
"""What a runner does with an output before it gathers: forget requests that ended, drop freed
hashes, take in new requests, take over the progress of known ones, drop or take in raw data, run
the encoder."""

_NEEDED: tuple[Duty, ...] = ("forget", "free", "add", "update", "encode")

_FILES: dict[Runner, tuple[str, ...]] = {
    "V1": ("v1/worker/gpu_model_runner.py",),
    "V2": (
        "v1/worker/gpu/model_runner.py",
        "v1/worker/gpu/model_states/default.py",
        "v1/worker/gpu/model_states/interface.py",
    ),
}
_CLASSES = ("GPUModelRunner", "DefaultModelState", "ModelState")
_OWNERS = ("self", "self.model_state", "super()")
"""Receivers whose methods are those of the classes."""

_LOOPS: dict[str, Duty] = {
    "free_encoder_mm_hashes": "free",
    "scheduled_new_reqs": "add",
    "encoder_input_updates": "payload",
}
_ENCODERS = ("_execute_mm_encoder", "execute_mm_encoder")
_GATHERS = ("_gather_mm_embeddings", "gather_mm_embeddings")
_LOOK_AHEAD = ("shift_computed_tokens", "draft_lookahead")
_SAMPLERS = ("self._sample", "self.sample")

_Event: TypeAlias = Duty | tuple[Literal["gather"], int] | Literal["sample"]


@dataclass(frozen=True)
class WorkerOrder:
    """What a runner does in a step.

    Attributes:
        duties: what it does before it gathers for the target, in order.
        look_ahead: how far its drafter reads ahead (tokens); 0 where it gathers nothing for one.
    """

    duties: tuple[Duty, ...]
    look_ahead: int


def worker_order(source: Source, runner: Runner) -> WorkerOrder | str:
    """The order of a release's runner, or why it is not recognised."""
    methods: dict[str, list[ast.FunctionDef]] = {}
    for name in _FILES[runner]:
        path = source.package / name
        if path.is_file():
            _collect(path, methods)
    if "execute_model" not in methods:
        return f"{_FILES[runner][0]} has no class {_CLASSES[0]} with execute_model"
    events: list[_Event] = []
    for entry in ("execute_model", "sample_tokens"):
        for method in methods.get(entry, ())[:1]:
            events += _Reader(methods).read(method)
    return _recognise(events)


def _collect(path: Path, methods: dict[str, list[ast.FunctionDef]]) -> None:
    """Note the methods of the classes, in the order in which they are looked up."""
    for node in parsed(path).body:
        if isinstance(node, ast.ClassDef) and node.name in _CLASSES:
            for part in node.body:
                if isinstance(part, ast.FunctionDef):
                    methods.setdefault(part.name, []).append(part)


def _recognise(events: list[_Event]) -> WorkerOrder | str:
    duties: list[Duty] = []
    target_gathers = False
    sampled = False
    look_ahead = 0
    for event in events:
        if isinstance(event, tuple):
            _, shift = event
            if shift < 0:
                return "it gathers with a look-ahead that is no constant"
            if sampled:
                look_ahead = shift
            elif shift != 0:
                return f"it gathers with a look-ahead of {shift} before it samples"
            target_gathers = True
        elif event == "sample":
            sampled = True
        elif sampled or (target_gathers and event not in duties):
            return f"it does {event} after it gathered for the target"
        elif event not in duties:
            duties.append(event)
    for needed in _NEEDED:
        if needed not in duties:
            return f"no place is found where it does {needed}"
    if not target_gathers or not sampled:
        return "no place is found where it gathers for the target and then samples"
    if duties[-1] != "encode":
        return f"it does {duties[-1]} after it encoded"
    return WorkerOrder(tuple(duties), look_ahead)


class _Reader(ast.NodeVisitor):
    """Notes events of one method and of those it calls, in the order of the source."""

    def __init__(self, methods: dict[str, list[ast.FunctionDef]]) -> None:
        self._methods = methods
        self._events: list[_Event] = []
        self._open: list[ast.FunctionDef] = []

    def read(self, method: ast.FunctionDef) -> list[_Event]:
        """The events of a method."""
        self._enter(method)
        return self._events

    def _enter(self, method: ast.FunctionDef) -> None:
        if method in self._open:
            return
        self._open.append(method)
        for statement in method.body:
            self.visit(statement)
        self._open.pop()

    def visit_For(self, node: ast.For) -> None:
        """A loop over a part of the output."""
        part = _last_name(node.iter)
        if part in _LOOPS:
            self._events.append(_LOOPS[part])
        elif part is not None and part.endswith("finished_req_ids"):
            calls = [c for c in ast.walk(node) if isinstance(c, ast.Call)]
            removers = ("self.requests.pop", "self._remove_request")
            names = {ast.unparse(call.func) for call in calls}
            if names.intersection(removers) or any(n.endswith(".remove_request") for n in names):
                self._events.append("forget")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Taking over the progress of known requests begins with a name for them."""
        self.generic_visit(node)
        if isinstance(node.value, ast.Attribute) and node.value.attr == "scheduled_cached_reqs":
            self._events.append("update")

    def visit_Call(self, node: ast.Call) -> None:
        """A call of the encoder, of a gather or of a method of the runner."""
        self.generic_visit(node)
        function = ast.unparse(node.func)
        owner, _, name = function.rpartition(".")
        if name in _GATHERS and len(self._open) and self._open[-1].name not in _GATHERS:
            self._events.append(("gather", _look_ahead(node)))
        elif name in _ENCODERS:
            if self._open[-1].name not in _ENCODERS:
                self._events.append("encode")
        elif function in _SAMPLERS:
            self._events.append("sample")
        elif owner in _OWNERS:
            # The last class that defines a method is its base: super() means that one.
            found = self._methods.get(name, ())
            for method in found[-1:] if owner == "super()" else found[:1]:
                self._enter(method)


def _last_name(node: ast.expr) -> str | None:
    """``scheduled_new_reqs`` of ``scheduler_output.scheduled_new_reqs`` and of its ``items()``."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.args:
            node = node.args[0]
        elif isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return None
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _look_ahead(call: ast.Call) -> int:
    """The look-ahead of a gather: a constant argument, or added to the progress."""
    for keyword in call.keywords:
        if keyword.arg in _LOOK_AHEAD:
            return _constant(keyword.value)
    for argument in call.args:
        if isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.Add):
            return _constant(argument.right)
    return 0


def _constant(node: ast.expr) -> int:
    """A number as it is written; -1 for anything else, which no order allows."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    return -1
