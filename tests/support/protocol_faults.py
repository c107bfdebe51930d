"""Realistic faults in the protocol code of a release, made on its syntax tree.

Each is one slip as a pull request might bring it: an update that is dropped on one branch, a
variable of the same type in the place of another, a statement that moved. They are made by kind for
every place where the kind applies; none is written by hand, so that nothing is tuned to one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from random import Random
from types import CodeType
from typing import Any, TypeAlias

from proofs.smt.mutate import STRICTER_OR_LOOSER

RELEASE = "0.33.0"


@dataclass(frozen=True)
class Place:
    """Functions of one module, or methods of one of its classes, that decide the protocol.

    Attributes:
        module: below ``vllm``.
        class_name: ``None`` for functions of the module.
        functions: their names.
        parts: parts of the function level that call them.
    """

    module: str
    class_name: str | None
    functions: tuple[str, ...]
    parts: tuple[str, ...] = ()


PLACES: tuple[Place, ...] = (
    Place(
        "v1.core.sched.scheduler",
        "Scheduler",
        (
            "schedule",
            "_reserve_prefill_lookahead",
            "_preempt_request",
            "_update_after_schedule",
            "_update_request_as_session",
            "_make_cached_request_data",
            "_reject_on_encoder_cache_embed_mismatch",
            "_allocate_encoder_inputs",
            "_try_schedule_encoder_inputs",
            "update_from_output",
            "_handle_stopped_request",
            "_update_request_with_output",
            "_get_encoder_input_updates",
            "add_request",
            "finish_requests",
            "_free_request",
            "_update_requests_with_invalid_blocks",
            "reset_encoder_cache",
        ),
    ),
    Place(
        "v1.core.sched.scheduler",
        "Scheduler",
        ("_free_encoder_inputs", "_free_encoder_input"),
        ("free",),
    ),
    Place("v1.core.sched.async_scheduler", "AsyncScheduler", ("_update_after_schedule",)),
    Place(
        "v1.core.encoder_cache_manager",
        "EncoderCacheManager",
        (
            "reset",
            "check_and_update_cache",
            "get_cached_num_encoder_embeds",
            "can_allocate",
            "allocate",
            "_add_cached_input_id",
            "free_encoder_input",
            "free",
            "get_freed_mm_hashes",
        ),
        ("book",),
    ),
    Place(
        "v1.worker.gpu_model_runner",
        "GPUModelRunner",
        ("_gather_mm_embeddings",),
        ("V1", "V1 with V2"),
    ),
    Place("v1.worker.gpu_model_runner", "GPUModelRunner", ("_batch_mm_inputs_from_scheduler",)),
    Place(
        "v1.worker.gpu.mm.encoder_runner",
        "EncoderRunner",
        ("gather_mm_embeddings",),
        ("V2", "V1 with V2"),
    ),
    Place("v1.worker.gpu.mm.encoder_runner", "EncoderRunner", ("prepare_mm_inputs",)),
    Place(
        "v1.worker.gpu.mm.encoder_cache",
        "EncoderCache",
        ("add_request", "remove_request", "update_encoder_inputs"),
    ),
)
"""What runs of the release's own in the loop. Its workers' ``_update_states`` and
``_cache_encoder_output`` do not, and get no faults."""

_OUTSIDE = re.compile(
    r"log|stats|lora|grammar|structured|pooling|pooler|routed|aux_|ec_connector|kv_events|"
    r"timestamp|record_event|kv_fetch|mrope|pruning|modality|throttle|defer|nan|perf|cudagraph|"
    r"prefill_interval|last_prefill|remote_kv|REMOTE|kv_async|cow|zero|prompt_embeds|trace",
    re.IGNORECASE,
)
"""Words of what no scenario drives: faults there are not made."""


@dataclass(frozen=True)
class Edit:
    """One change to a syntax tree: a field of one of its nodes gets another value."""

    parent: ast.AST
    field: str
    value: Any


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        kind: of which sort.
        place: where the function stands.
        function: the function or method.
        lines: first and last line of what is changed, in the release's own source.
        change: before and after.
        root: the syntax tree of the function.
        edit: what to change in it.
    """

    kind: str
    place: Place
    function: str
    lines: tuple[int, int]
    change: str
    root: ast.FunctionDef
    edit: Edit

    @property
    def key(self) -> str:
        """How the record names it."""
        return f"{self.function}:{self.lines[0]}: {self.change}"


Change: TypeAlias = tuple[ast.AST, str, Edit]
"""What is changed, in words what becomes of it, and the edit."""


def all_faults(package: Path) -> list[Fault]:
    """Every fault of every kind in a release, in the order of its source.

    Args:
        package: the folder ``vllm``.
    """
    found: dict[str, Fault] = {}
    for place in PLACES:
        path = package / (place.module.replace(".", "/") + ".py")
        if not path.is_file():
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for root in _functions(tree, place):
            for kind, make in KINDS.items():
                for node, change, edit in make(root):
                    lines = node.lineno, node.end_lineno or node.lineno  # type: ignore[attr-defined]
                    if not _OUTSIDE.search(change):
                        fault = Fault(kind, place, root.name, lines, change, root, edit)
                        found.setdefault(fault.key, fault)
    return list(found.values())


def sample(faults: Sequence[Fault], per_kind: int, seed: int) -> list[Fault]:
    """So many faults of each kind, or all where there are fewer.

    Half of them are of the book, of encoder inputs and of the workers, whose code is the shorter
    part.
    """
    picked: list[Fault] = []
    for kind in KINDS:
        of_kind = [fault for fault in faults if fault.kind == kind]
        random = Random(f"{seed} {kind}")
        random.shuffle(of_kind)
        near = [fault for fault in of_kind if _is_near(fault)]
        first = near[: per_kind // 2]
        rest = [fault for fault in of_kind if fault not in first and not _is_near(fault)]
        picked += (first + rest + near[len(first) :])[:per_kind]
    return picked


def _is_near(fault: Fault) -> bool:
    return "encoder" in fault.function or "scheduler" not in fault.place.module


def _functions(tree: ast.Module, place: Place) -> Iterator[ast.FunctionDef]:
    body: Sequence[ast.stmt] = tree.body
    if place.class_name is not None:
        classes = [n for n in body if isinstance(n, ast.ClassDef) and n.name == place.class_name]
        body = classes[0].body if classes else ()
    by_name = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
    yield from (by_name[name] for name in place.functions if name in by_name)


def patch(fault: Fault, modules: Callable[[str], Any]) -> None:
    """Put the fault into the release that this process has loaded; it stays.

    Args:
        fault: made from the source of that release.
        modules: gives a module of the release by its name below ``vllm``.
    """
    module = modules(fault.place.module)
    owner = module if fault.place.class_name is None else getattr(module, fault.place.class_name)
    function = vars(owner)[fault.function]
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    original: CodeType = function.__code__
    parent, field = fault.edit.parent, fault.edit.field
    before = getattr(parent, field)
    setattr(parent, field, fault.edit.value)
    try:
        function.__code__ = _compiled(fault.root, original)
    finally:
        setattr(parent, field, before)


def _compiled(root: ast.FunctionDef, original: CodeType) -> CodeType:
    """The code of a function, with the line numbers and the free names of the original."""
    bare = ast.FunctionDef(root.name, root.args, root.body, [], None)
    ast.copy_location(bare, root)
    outer = ast.parse(f"def around({', '.join(original.co_freevars)}):\n    pass")
    assert isinstance(outer.body[0], ast.FunctionDef)
    outer.body[0].body = [bare]
    code = compile(ast.fix_missing_locations(outer), original.co_filename, "exec")
    around = next(c for c in code.co_consts if isinstance(c, CodeType))
    return next(c for c in around.co_consts if isinstance(c, CodeType) and c.co_name == root.name)


# --- what each kind makes --------------------------------------------------------------------


def _blocks(root: ast.AST) -> Iterator[tuple[ast.AST, str, list[ast.stmt]]]:
    """Every list of statements, the outermost first."""
    for node in ast.walk(root):
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield node, name, block


def _without(block: list[ast.stmt], index: int) -> list[ast.stmt]:
    gone = ast.copy_location(ast.Pass(), block[index])
    return [*block[:index], gone, *block[index + 1 :]]


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 100 else text[:97] + "..."


_COLLECTION_CALLS = frozenset(
    {"append", "add", "update", "pop", "remove", "discard", "clear", "extend", "popitem", "insert"}
)


def _is_collection_call(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Attribute)
        and statement.value.func.attr in _COLLECTION_CALLS
    )


def _dropped_updates(root: ast.FunctionDef) -> Iterator[Change]:
    """Updates of an attribute or of a count, and calls, on one branch."""
    stored: set[str] = set()
    for parent, name, block in _blocks(root):
        for index, statement in enumerate(block):
            is_update = isinstance(statement, ast.AugAssign)
            if isinstance(statement, ast.Assign):
                target = statement.targets[0]
                text = ast.unparse(target)
                is_update = isinstance(target, (ast.Attribute, ast.Subscript)) or text in stored
                stored.add(text)
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                is_update = not _is_collection_call(statement)
            if is_update:
                edit = Edit(parent, name, _without(block, index))
                yield statement, f"{_short(statement)} -> dropped", edit


def _kept_collections(root: ast.FunctionDef) -> Iterator[Change]:
    """Entries that are not taken in or out, and copies that are the original."""
    for parent, name, block in _blocks(root):
        for index, statement in enumerate(block):
            if _is_collection_call(statement) or isinstance(statement, ast.Delete):
                edit = Edit(parent, name, _without(block, index))
                yield statement, f"{_short(statement)} -> dropped", edit
    for parent, name, node in _expressions(root):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="copy"), args=[]):
                yield node, f"{_short(node)} -> {_short(value)}", _put(parent, name, node, value)
            case ast.Call(func=ast.Name(id="list" | "set" | "dict" | "tuple"), args=[value]):
                yield node, f"{_short(node)} -> {_short(value)}", _put(parent, name, node, value)


def _dropped_jumps(root: ast.FunctionDef) -> Iterator[Change]:
    """``break``, ``continue`` and early returns of nothing, dropped or one for the other."""
    for parent, name, block in _blocks(root):
        for index, statement in enumerate(block):
            match statement:
                case ast.Break() | ast.Continue():
                    yield (
                        statement,
                        f"{_short(statement)} -> dropped",
                        Edit(parent, name, _without(block, index)),
                    )
                    swapped = ast.Continue() if isinstance(statement, ast.Break) else ast.Break()
                    ast.copy_location(swapped, statement)
                    yield (
                        statement,
                        f"{_short(statement)} -> {_short(swapped)}",
                        Edit(parent, name, [*block[:index], swapped, *block[index + 1 :]]),
                    )
                case ast.Return(value=None) if parent is not root:
                    yield statement, "return -> dropped", Edit(parent, name, _without(block, index))


def _moved_statements(root: ast.FunctionDef) -> Iterator[Change]:
    """A statement after the next one, or into the branch that follows it."""
    simple = (ast.Assign, ast.AugAssign, ast.Expr)
    for parent, name, block in _blocks(root):
        for index, (first, second) in enumerate(pairwise(block)):
            if not isinstance(first, simple) or isinstance(
                getattr(first, "value", 0), ast.Constant
            ):
                continue
            after = _short(second).split(":")[0]
            swapped = [*block[:index], second, first, *block[index + 2 :]]
            yield first, f"{_short(first)} -> after `{after}`", Edit(parent, name, swapped)
            if isinstance(second, ast.If):
                inside = ast.copy_location(
                    ast.If(second.test, [first, *second.body], second.orelse), second
                )
                moved = [*block[:index], inside, *block[index + 2 :]]
                yield first, f"{_short(first)} -> inside `{after}`", Edit(parent, name, moved)


def _expressions(root: ast.FunctionDef) -> Iterator[tuple[ast.AST, str, ast.expr]]:
    """Every expression of the body, with the node and the field that hold it."""
    for statement in root.body:
        for parent in ast.walk(statement):
            for name, value in ast.iter_fields(parent):
                if name in ("annotation", "returns", "decorator_list"):
                    continue
                for node in value if isinstance(value, list) else (value,):
                    if isinstance(node, ast.expr):
                        yield parent, name, node


def _put(parent: ast.AST, name: str, node: ast.expr, replacement: ast.expr) -> Edit:
    value = getattr(parent, name)
    if isinstance(value, list):
        return Edit(parent, name, [replacement if entry is node else entry for entry in value])
    return Edit(parent, name, replacement)


_TURNED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}


def _comparisons(root: ast.FunctionDef) -> Iterator[Change]:
    """Strict for loose, turned round, negated; the first or last condition of several dropped."""
    for parent, name, node in _expressions(root):
        replacements: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            for table in (STRICTER_OR_LOOSER, _TURNED):
                operator = table.get(type(node.ops[0]))
                if operator is not None:
                    operators = [operator(), *node.ops[1:]]
                    replacements.append(ast.Compare(node.left, operators, node.comparators))
        if isinstance(node, ast.BoolOp):
            for kept in (node.values[1:], node.values[:-1]):
                replacements.append(kept[0] if len(kept) == 1 else ast.BoolOp(node.op, kept))
        for replacement in replacements:
            ast.copy_location(replacement, node)
            edit = _put(parent, name, node, replacement)
            yield node, f"{_short(node)} -> {_short(replacement)}", edit


_SHIFT = re.compile(r"shift|look_?ahead|placeholder|num_embeds_to_schedule|draft")


def _dropped_shifts(root: ast.FunctionDef) -> Iterator[Change]:
    """A shift or a look-ahead left out of one sum, or not handed over to one call."""
    for parent, name, node in _expressions(root):
        match node:
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                if _SHIFT.search(ast.unparse(right)):
                    edit = _put(parent, name, node, left)
                    yield node, f"{_short(node)} -> {_short(left)}", edit
                elif _SHIFT.search(ast.unparse(left)) and isinstance(node.op, ast.Add):
                    edit = _put(parent, name, node, right)
                    yield node, f"{_short(node)} -> {_short(right)}", edit
        if (
            isinstance(parent, ast.keyword)
            and parent.arg
            and _SHIFT.search(parent.arg)
            and not isinstance(node, ast.Constant)
        ):
            zero = ast.copy_location(ast.Constant(0), node)
            yield node, f"{parent.arg}={_short(node)} -> {parent.arg}=0", Edit(parent, name, zero)


_NUMBER = re.compile(r"^(num_|start_|end_|cur_query|curr_embeds)|_(budget|tokens|idx|pos|embeds)$")
_REQUEST = re.compile(r"^(request|req|session|update|(preempted|failed|new|running)_req(uest)?)$")
_NAMES = frozenset({"req_id", "request_id", "mm_hash", "preempted_req_id"})


def _swapped(root: ast.FunctionDef, belongs: Callable[[str], bool]) -> Iterator[Change]:
    """A name read where another one that belongs to the same type was meant: the most alike."""
    stored: dict[str, int] = {a.arg: root.lineno for a in root.args.args + root.args.kwonlyargs}
    for node in ast.walk(root):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored[node.id] = min(node.lineno, stored.get(node.id, node.lineno))
    names = [name for name in stored if belongs(name) and name not in _collections(root)]
    for parent, name, node in _expressions(root):
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        known = [n for n in names if n != node.id and stored[n] < node.lineno]
        if node.id not in names or not known:
            continue
        nearest = max(known, key=lambda n: SequenceMatcher(None, n, node.id).ratio())
        replacement = ast.copy_location(ast.Name(nearest, ast.Load()), node)
        where = _short(parent)
        yield node, f"{node.id} -> {nearest}, in {where}", _put(parent, name, node, replacement)


def _collections(root: ast.FunctionDef) -> frozenset[str]:
    """Names that the source annotates as collections or arrays."""
    found: set[str] = set()
    for node in ast.walk(root):
        named: str | None = None
        if isinstance(node, ast.arg):
            named = node.arg
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            named = node.target.id
        annotation = getattr(node, "annotation", None)
        if named and annotation and re.search("dict|list|set|ndarray", ast.unparse(annotation)):
            found.add(named)
    return frozenset(found)


def _swapped_numbers(root: ast.FunctionDef) -> Iterator[Change]:
    """A number of tokens, rows or slots for another."""
    return _swapped(root, lambda name: _NUMBER.search(name) is not None)


def _wrong_requests(root: ast.FunctionDef) -> Iterator[Change]:
    """Another request, or the last one that runs."""
    yield from _swapped(root, lambda name: _REQUEST.match(name) is not None)
    yield from _swapped(root, lambda name: name in _NAMES)
    if root.name not in ("schedule", "update_from_output", "_free_request"):
        return
    for parent, name, node in _expressions(root):
        if isinstance(node, ast.Name) and node.id == "request" and isinstance(node.ctx, ast.Load):
            last = ast.parse("(self.running[-1] if self.running else request)", mode="eval").body
            for part in ast.walk(last):
                ast.copy_location(part, node)
            change = f"request -> self.running[-1], in {_short(parent)}"
            yield node, change, _put(parent, name, node, last)


KINDS: Mapping[str, Callable[[ast.FunctionDef], Iterator[Change]]] = {
    "update dropped": _dropped_updates,
    "collection not kept up": _kept_collections,
    "jump dropped or changed": _dropped_jumps,
    "statement moved": _moved_statements,
    "comparison or condition": _comparisons,
    "shift left out": _dropped_shifts,
    "number for another": _swapped_numbers,
    "wrong request": _wrong_requests,
}
"""By name, what makes the faults of a kind."""
