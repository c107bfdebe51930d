"""Breaking any one guard of the reference turns a claim red.

Mutants come from the syntax tree: each comparison off by one or turned round, each term, operand or
condition dropped, and each statement without which a function still runs dropped. Only the code of
the function is exchanged, so that every module sees the mutant.
"""

from __future__ import annotations

import ast
import copy
import functools
import importlib
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest

from proofs.smt.mutate import Mutant, mutants

GUARDS = {
    "guards": (
        "reference_may_go",
        "encoder_decoder_reference_may_go",
        "tolerates_miss_v1",
        "tolerates_miss_v2",
        "overlaps",
        "slice_bounds",
        "search_window",
        "rows_in_range",
    ),
    "request": ("end", "rows_before", "num_rows", "rows_in_range", "features_in_window"),
    "encoder_cache": (
        "check_and_update_cache",
        "_require_same_rows",
        "can_allocate",
        "_next_to_evict",
        "_evict",
        "allocate",
        "get_cached_input_ids",
        "_occurrences",
        "free_encoder_input",
        "_drop_reference",
        "_rows_to_credit",
        "free",
        "get_freed_mm_hashes",
        "reset",
    ),
    "free": ("free_encoder_inputs",),
    "runner_v1": ("gather_mm_embeddings", "_tolerates_miss", "_mark", "_take"),
    "runner_v2": ("gather_mm_embeddings", "_search", "_tolerates_miss", "_taking", "_pieces"),
    "merge": ("merge_embeddings",),
}
"""By module of the reference, the functions that decide something."""


def dropped_statements(tree: ast.Module, functions: tuple[str, ...]) -> Iterator[Mutant]:
    """Mutants in which one statement does nothing.

    The only statement of a ``while`` stays: without it the loop would not end.
    """
    for outer in ast.walk(tree):
        if not (isinstance(outer, ast.FunctionDef) and outer.name in functions):
            continue
        endless = {id(loop.body[0]) for loop in ast.walk(outer) if isinstance(loop, ast.While)}
        for number, node in enumerate(ast.walk(outer)):
            droppable = isinstance(node, (ast.AugAssign, ast.Delete, ast.Continue, ast.Assert)) or (
                isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
            )
            if not droppable or id(node) in endless:
                continue
            changed = copy.deepcopy(tree)
            function = next(
                f
                for f in ast.walk(changed)
                if isinstance(f, ast.FunctionDef) and f.lineno == outer.lineno
            )
            target = next(n for index, n in enumerate(ast.walk(function)) if index == number)
            nothing = ast.copy_location(ast.Pass(), target)
            for parent in ast.walk(function):
                for body in (getattr(parent, "body", None), getattr(parent, "orelse", None)):
                    if isinstance(body, list) and target in body:
                        body[body.index(target)] = nothing
            change = f"{ast.unparse(node).splitlines()[0]} -> (nothing)"
            yield Mutant(outer.name, node.lineno, change, changed)


def functions_of(module: ModuleType) -> dict[str, FunctionType]:
    """Every function that the module defines, by qualified name."""
    found: dict[str, FunctionType] = {}
    for value in vars(module).values():
        members = vars(value).values() if inspect.isclass(value) else [value]
        for member in members:
            if isinstance(member, property):
                member = member.fget
            elif isinstance(member, functools.cached_property):
                member = member.func
            if isinstance(member, FunctionType) and member.__module__ == module.__name__:
                found[member.__qualname__] = member
    return found


def codes_of(code: CodeType) -> dict[str, CodeType]:
    """Code objects inside a module's or a class's code, by qualified name."""
    found: dict[str, CodeType] = {}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found[constant.co_qualname] = constant
            found |= codes_of(constant)
    return found


@contextmanager
def in_place(module: ModuleType, mutant: Mutant) -> Iterator[None]:
    """Run the mutant's code in the module's own functions."""
    changed = codes_of(compile(mutant.tree, module.__file__ or "", "exec"))
    functions = {
        name: function
        for name, function in functions_of(module).items()
        if function.__name__ == mutant.function
    }
    assert functions, f"{mutant.function} is not a function of {module.__name__}"
    originals = {name: function.__code__ for name, function in functions.items()}
    try:
        for name, function in functions.items():
            function.__code__ = changed[name]
        yield
    finally:
        for name, function in functions.items():
            function.__code__ = originals[name]


def module_of(name: str) -> ModuleType:
    """The module of the reference with this name, which is unique among its folders."""
    for folder in ("scheduling", "worker"):
        if importlib.util.find_spec(f"impl.reference.{folder}.{name}"):
            return importlib.import_module(f"impl.reference.{folder}.{name}")
    raise AssertionError(f"no module {name} in the reference")


def all_mutants() -> list[tuple[str, Mutant]]:
    made = []
    for name, functions in GUARDS.items():
        module = module_of(name)
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        found = [*mutants(tree, functions), *dropped_statements(tree, functions)]
        made += [(name, mutant) for mutant in found]
    return made


EQUIVALENT = {
    # A margin only holds references longer, and no claim at this level needs one: it is 0.
    "guards.reference_may_go: end + margin -> end",
    # A second look at what the selection of features already guarantees.
    "runner_v1.gather_mm_embeddings: first < last -> first <= last",
    (
        "runner_v1.gather_mm_embeddings: assert first < last, "
        "'a selected feature shares a position with the window' -> (nothing)"
    ),
    "runner_v2.gather_mm_embeddings: first < last -> first <= last",
    (
        "runner_v2.gather_mm_embeddings: assert first < last, "
        "'the search returns features that meet the window' -> (nothing)"
    ),
    # A shortcut: a window that starts at the prefill's end holds no feature.
    "runner_v2.gather_mm_embeddings: query_starts < prefill_lens -> query_starts <= prefill_lens",
}
"""Mutants that do the same as the original on every valid case."""

LETS_GO_LATER = {
    (
        "guards.reference_may_go: end + margin <= num_computed_tokens - num_output_placeholders -> "
        "end + margin < num_computed_tokens - num_output_placeholders"
    ),
    (
        "guards.reference_may_go: num_computed_tokens - num_output_placeholders -> "
        "-num_output_placeholders"
    ),
    (
        "guards.encoder_decoder_reference_may_go: num_computed_tokens > 0 -> "
        "num_computed_tokens > 0 + 1"
    ),
}
"""Mutants that hold a reference longer than needed: safe, and seen only where progress is."""

BEYOND_A_CASE = {
    # Without hash-is-content a book may accept; which tensor is then read is the worker's affair.
    "encoder_cache.check_and_update_cache: self._require_same_rows(request, input_id) -> (nothing)",
    # Notices of the encoder-decoder book concern the worker's memory only.
    (
        "encoder_cache.allocate: "
        "self._allocated.append(request.mm_features[input_id].identifier) -> (nothing)"
    ),
}
"""Mutants of what a case does not contain: the claims come with the loop. Until then
``test_reference_book`` checks each of these directly."""


@pytest.fixture(scope="module")
def verdicts(case_pool, findings_of, reference) -> dict[str, list[str | None]]:
    """For every mutant, a claim that turned red; mutants of one name together.

    What turned another mutant red is tried first: it often does so again.
    """
    seen: dict[str, list[str | None]] = {}
    pool = list(case_pool)
    for name, mutant in all_mutants():
        module = module_of(name)
        claim = None
        with in_place(module, mutant):
            for place, case in enumerate(pool):
                found = findings_of(reference, case)
                if found:
                    claim = found[0].claim
                    pool.insert(0, pool.pop(place))
                    break
        seen.setdefault(f"{name}.{mutant.function}: {mutant.change}", []).append(claim)
    return seen


def test_every_mutant_turns_a_claim_red(verdicts):
    """Otherwise a guard of the reference is not checked by any claim."""
    excused = EQUIVALENT | LETS_GO_LATER | BEYOND_A_CASE
    survivors = [name for name, claims in verdicts.items() if None in claims]
    assert [name for name in survivors if name not in excused] == []


@pytest.mark.parametrize("table", [EQUIVALENT, LETS_GO_LATER, BEYOND_A_CASE])
def test_excuses_are_needed(verdicts, table):
    """Otherwise the tables excuse mutants that are seen, or guards that are gone."""
    assert {name for name in table if not any(verdicts.get(name, ["no such mutant"]))} == table


def test_mutants_are_made_of_every_module(verdicts):
    """Otherwise a guard that was renamed is no longer broken on trial."""
    assert {name.split(".")[0] for name in verdicts} == set(GUARDS)
    assert sum(map(len, verdicts.values())) > 120


@pytest.mark.parametrize("name", GUARDS)
def test_guards_exist(name):
    """Otherwise the list names functions that are gone."""
    module = module_of(name)
    names = {function.__name__ for function in functions_of(module).values()}
    assert set(GUARDS[name]) <= names


def test_the_original_runs_again_afterwards(verdicts, case_pool, findings_of, reference):
    """Otherwise a mutant outlives its trial and spoils other tests."""
    assert [f for case in case_pool for f in findings_of(reference, case)] == []
