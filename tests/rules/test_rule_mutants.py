"""Every change to a rule turns an obligation red.

Every module of :mod:`spec.rules` is mutated, whatever its name. A mutant is put to the obligations
whose formulas call the function that it changes, and to no other: the rest would say the same of it
as of the original.
"""

from __future__ import annotations

import ast
import copy
import importlib
import pkgutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

import spec.rules
from proofs.smt import mutate
from proofs.smt.obligation import Obligation, negated
from proofs.smt.solvers import RESOURCE_LIMIT, SOLVERS, Z3, SolverVocabulary
from proofs.smt.vocabulary import Values, Vocabulary
from proofs.theorems.groups import all_obligations
from spec.algebra import BoolTerm, IntTerm, and_, eq, implies, max_, min_, not_
from spec.rules.releases import Shifts
from spec.rules.stopping_passes import Item

MODULES: tuple[ModuleType, ...] = tuple(
    importlib.import_module(f"{spec.rules.__name__}.{module.name}")
    for module in pkgutil.iter_modules(spec.rules.__path__)
)


@dataclass(frozen=True)
class Rule:
    """A function of a module of rules, or a property of one of its classes."""

    module: ModuleType
    class_name: str | None
    function: FunctionType

    @property
    def name(self) -> str:
        """Its full name."""
        return f"{self.module.__name__.removeprefix('spec.rules.')}.{self.function.__qualname__}"

    def code_of(self, tree: ast.Module) -> CodeType:
        """The code of the function of that name in another version of the module."""
        namespace: dict[str, Any] = {"__name__": self.module.__name__}
        exec(compile(tree, str(self.module.__file__), "exec"), namespace)
        found = namespace[self.class_name or self.function.__name__]
        if self.class_name is not None:
            found = vars(found)[self.function.__name__].fget
        return found.__code__


def _rules(module: ModuleType) -> Iterator[Rule]:
    """What solvers reason about: the functions and properties that return terms."""
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if isinstance(value, FunctionType):
            if _returns_terms(module, value) and name not in NO_FORMULA_CALLS:
                yield Rule(module, None, value)
        elif isinstance(value, type):
            for member in vars(value).values():
                getter = member.fget if isinstance(member, property) else None
                if isinstance(getter, FunctionType) and _returns_terms(module, getter):
                    yield Rule(module, name, getter)


def _returns_terms(module: ModuleType, function: FunctionType) -> bool:
    kind = str(function.__annotations__["return"])
    data_class = vars(module).get(kind)
    if is_dataclass(data_class):
        return any(field.type in TERMS for field in fields(data_class))
    return kind in TERMS


TERMS = ("IntTerm", "BoolTerm", "Window")

CONNECTIVES = {"max_": max_, "min_": min_}
"""What mutants use that a module may not import."""

NO_FORMULA_CALLS = {
    "count_rows_before": "counts a mask, which the solvers know by its prefix counts only",
    "in_tokens": "chooses by what a release's table says, before any formula is built",
}
"""Functions that no formula can call, and why."""

RULES: dict[str, Rule] = {rule.name: rule for module in MODULES for rule in _rules(module)}


def _connective_mutants(tree: ast.Module, function: str) -> Iterator[mutate.Mutant]:
    """Each operand of a connective dropped; either branch of a choice taken always."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or node.name != function:
            continue
        for number, call in enumerate(ast.walk(node)):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
                continue
            for replacement in _without_an_operand(call):
                changed = copy.deepcopy(tree)
                (twin,) = (
                    twin
                    for twin in ast.walk(changed)
                    if isinstance(twin, ast.FunctionDef)
                    and (twin.name, twin.lineno) == (node.name, node.lineno)
                )
                place = list(ast.walk(twin))[number]
                assert isinstance(place, ast.Call)
                place.func, place.args = replacement.func, replacement.args
                ast.fix_missing_locations(changed)
                change = f"{ast.unparse(call)} -> {ast.unparse(replacement)}"
                yield mutate.Mutant(function, call.lineno, change, changed)


def _without_an_operand(call: ast.Call) -> Iterator[ast.Call]:
    assert isinstance(call.func, ast.Name)
    match call.func.id, call.args:
        case (("and_" | "or_"), operands) if len(operands) > 1:
            for index in range(len(operands)):
                yield ast.Call(call.func, [*operands[:index], *operands[index + 1 :]], [])
        case ("max_" | "min_") as name, [first, second]:
            yield ast.Call(call.func, [first, first], [])
            yield ast.Call(call.func, [second, second], [])
            swapped = "min_" if name == "max_" else "max_"
            yield ast.Call(ast.Name(swapped, ast.Load()), [first, second], [])
        case "ite", [condition, first, second]:
            yield ast.Call(call.func, [condition, first, first], [])
            yield ast.Call(call.func, [condition, second, second], [])
        case "not_", [operand]:
            yield ast.Call(ast.Name("and_", ast.Load()), [operand], [])


def _mutants(rule: Rule) -> Iterator[mutate.Mutant]:
    tree = ast.parse(Path(str(rule.module.__file__)).read_text(encoding="utf-8"))
    name = rule.function.__name__
    yield from mutate.mutants(tree, (name,), rule.class_name)
    if rule.class_name is None:
        yield from _connective_mutants(tree, name)


MUTANTS: dict[str, list[mutate.Mutant]] = {
    name: list(_mutants(rule)) for name, rule in RULES.items()
}

CALLS_ONLY = {"geometry.row_range", "geometry.target_window"}
"""Rules that only put other rules together, which leaves nothing to change in them."""


def _spared_neighbours_stop(
    first: Item,
    second: Item,
    cache_size: IntTerm,
    last_boundary: IntTerm,
    last_cacheable: IntTerm,
    shifts: Shifts,
) -> BoolTerm:
    """The last boundary at or before a cut at a boundary is that boundary."""
    cut = second.offset - shifts.cut
    return implies(eq(cut, last_cacheable), eq(last_boundary, last_cacheable))


def _neighbours_near_the_end_stop(
    first: Item, second: Item, cache_size: IntTerm, num_prompt_tokens: IntTerm, shift: IntTerm
) -> BoolTerm:
    """Items are sorted and disjoint."""
    return first.end <= second.offset


def _boundary_splits_the_end(
    num_prompt_tokens: IntTerm, last_boundary: IntTerm, shift: IntTerm
) -> BoolTerm:
    """The boundary is the last before the prompt's end."""
    return last_boundary < num_prompt_tokens


def _reservation_can_stop(cache_size: IntTerm, largest_rows: IntTerm, shift: IntTerm) -> BoolTerm:
    """Engines make the cache at least the largest item."""
    return largest_rows <= cache_size


def _reserving_budget_can_stop(
    encoder_budget: IntTerm, largest_rows: IntTerm, shift: IntTerm, starts_inside: BoolTerm
) -> BoolTerm:
    """Engines make the encoder budget at least the largest item."""
    return and_(largest_rows <= encoder_budget, encoder_budget >= 1)


DOMAINS: dict[str, Callable[..., BoolTerm]] = {
    "stop_conditions.spared_neighbours_stop": _spared_neighbours_stop,
    "stop_conditions.neighbours_near_the_end_stop": _neighbours_near_the_end_stop,
    "stop_conditions.boundary_splits_the_end": _boundary_splits_the_end,
    "stop_settings.reservation_can_stop": _reservation_can_stop,
    "stop_settings.reserving_budget_can_stop": _reserving_budget_can_stop,
}
"""Where the arguments of a rule lie, for mutants that mean the same there and nowhere else."""


@cache
def mentions() -> dict[CodeType, list[Obligation]]:
    """For each rule's code the obligations whose formulas call it, on the data of their witness."""
    found: dict[CodeType, list[Obligation]] = defaultdict(list)
    codes = {rule.function.__code__ for rule in RULES.values()}
    for obligation in all_obligations():
        called: set[CodeType] = set()

        def see(frame: Any, event: str, argument: Any, called: set[CodeType] = called) -> None:
            if event == "call":
                called.add(frame.f_code)

        sys.setprofile(see)
        try:
            obligation.build(Values(obligation.witness))
        finally:
            sys.setprofile(None)
        for code in codes & called:
            found[code].append(obligation)
    return found


def _argument(v: Vocabulary, module: ModuleType, name: str, kind: str) -> Any:
    """Any value of an argument: a variable, or a data class of variables."""
    if kind == "IntTerm":
        return v.integer(name)
    if kind == "BoolTerm":
        return v.boolean(name)
    data_class = vars(module)[kind]
    return data_class(
        *(
            _argument(v, module, f"{name}.{field.name}", str(field.type))
            for field in fields(data_class)
        )
    )


def _same(first: Any, second: Any) -> BoolTerm:
    if is_dataclass(first):
        return and_(
            *(_same(getattr(first, f.name), getattr(second, f.name)) for f in fields(first))
        )
    return eq(first, second)


def is_proved_equal(rule: Rule, mutant: mutate.Mutant, domain: Callable[..., BoolTerm]) -> bool:
    """Whether both solvers prove that the mutant says what the rule says, on all of a domain."""
    changed = FunctionType(rule.code_of(mutant.tree), vars(rule.module) | CONNECTIVES)

    def question(v: SolverVocabulary) -> BoolTerm:
        if rule.class_name is not None:
            arguments = {"self": _argument(v, rule.module, "self", rule.class_name)}
        else:
            arguments = {
                name: _argument(v, rule.module, name, str(kind))
                for name, kind in rule.function.__annotations__.items()
                if name != "return"
            }
        return and_(
            v.truth(True),
            domain(**arguments),
            not_(_same(rule.function(**arguments), changed(**arguments))),
        )

    return all(solver.check(question, RESOURCE_LIMIT).answer == "unsat" for solver in SOLVERS)


def survivors(monkeypatch: pytest.MonkeyPatch, rule: Rule) -> list[mutate.Mutant]:
    """The mutants of a rule that no obligation tells from it."""
    original = rule.function.__code__
    found = []
    for connective, function in CONNECTIVES.items():
        monkeypatch.setattr(rule.module, connective, function, raising=False)
    for mutant in MUTANTS[rule.name]:
        # The function itself is changed, so that whoever holds it calls the mutant.
        monkeypatch.setattr(rule.function, "__code__", rule.code_of(mutant.tree))
        if not any(
            Z3().check(negated(obligation.build)).answer == "sat"
            for obligation in mentions()[original]
        ):
            found.append(mutant)
    monkeypatch.undo()
    return found


def _anywhere(**arguments: object) -> bool:
    return True


@pytest.mark.parametrize("name", RULES)
def test_every_mutant_of_a_rule_turns_an_obligation_red(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Wrong: a rule that can be changed without an obligation noticing is not proved."""
    rule = RULES[name]
    assert mentions()[rule.function.__code__], "no obligation calls the rule"
    domain = DOMAINS.get(name, _anywhere)
    unlike = [
        mutant.name
        for mutant in survivors(monkeypatch, rule)
        if not is_proved_equal(rule, mutant, domain)
    ]
    assert unlike == []


@pytest.mark.parametrize("name", DOMAINS)
def test_each_domain_is_needed(name: str) -> None:
    """Wrong: a domain under which a mutant may hide, although it is the same everywhere."""
    rule = RULES[name]
    assert any(
        is_proved_equal(rule, mutant, DOMAINS[name]) > is_proved_equal(rule, mutant, _anywhere)
        for mutant in MUTANTS[name]
    )


def test_each_rule_has_mutants() -> None:
    """Wrong: a rule without a mutant would be left out above unseen."""
    assert {name for name in RULES if not MUTANTS[name]} == CALLS_ONLY
    assert len(MODULES) > 1
