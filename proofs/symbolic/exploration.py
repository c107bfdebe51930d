"""Enumerate every feasible path of a function that runs on symbolic integers.

When the function asks a comparison for its truth value, the exploration decides: if only one answer
is feasible under the path so far, that one; else one answer now and the other on a later run of the
same function from its start. The outcome is a decision tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import z3

from proofs.symbolic.integers import NotModelled, SymbolicBool, SymbolicInt, deciding
from proofs.symbolic.tree import Decision, Leaf, Tree, Unfinished, Value, insert


class BudgetExhausted(Exception):  # noqa: N818 - it says what happened
    """A solver gave up, so that this path is not finished."""


@dataclass
class Counts:
    """Work done: paths run to their end, solver queries, paths that did not finish."""

    paths: int = 0
    queries: int = 0
    unfinished: int = 0

    def add(self, more: Counts) -> None:
        """Add another exploration's work."""
        self.paths += more.paths
        self.queries += more.queries
        self.unfinished += more.unfinished


@dataclass(frozen=True)
class _Simplified:
    """A condition, and its truth value if it has one on all inputs.

    Keeping the original alive keeps its identifier its own.
    """

    original: z3.BoolRef
    condition: z3.BoolRef
    truth: bool | None


@dataclass
class Exploration:
    """Enumerate the paths of one function under assumptions.

    Attributes:
        context: the z3 context that owns every term of this exploration.
        assumptions: what is assumed of the symbolic inputs.
        resource_limit: z3 resource units for each query; never a timeout, so runs repeat exactly.
        path_budget: paths after which the exploration stops and says so.
        counts: the work done so far.
        facts: what was added as true of every input while the code ran.
    """

    context: z3.Context = field(default_factory=z3.Context)
    assumptions: list[z3.BoolRef] = field(default_factory=list)
    resource_limit: int = 2_000_000
    path_budget: int = 50_000
    counts: Counts = field(default_factory=Counts)
    facts: list[z3.BoolRef] = field(default_factory=list)
    _known_facts: set[int] = field(default_factory=set)
    _prefix: list[Decision] = field(default_factory=list)
    _decisions: list[Decision] = field(default_factory=list)
    _pending: list[z3.BoolRef] = field(default_factory=list)
    _simplifications: dict[int, _Simplified] = field(default_factory=dict)
    _model: z3.ModelRef | None = None
    _solver: z3.Solver = field(init=False)

    def __post_init__(self) -> None:
        """Create the one incremental solver that decides feasibility."""
        self._solver = z3.SolverFor("QF_UFLIA", ctx=self.context)
        self._solver.set("random_seed", 0)
        self._solver.set("rlimit", self.resource_limit)

    def integer(self, name: str) -> SymbolicInt:
        """A symbolic integer."""
        return SymbolicInt(z3.Int(name, self.context))

    def boolean(self, name: str) -> SymbolicBool:
        """A symbolic truth value."""
        return SymbolicBool(z3.Bool(name, self.context))

    def assume(self, *conditions: z3.BoolRef) -> None:
        """Assume conditions on the inputs, before exploring."""
        self.assumptions.extend(conditions)

    def add_fact(self, fact: z3.BoolRef) -> None:
        """Add something true of every input, such as a law of prefix counts."""
        if fact.get_id() in self._known_facts:
            return
        self._known_facts.add(fact.get_id())
        self.facts.append(fact)
        self._pending.append(fact)
        self._drop_model_unless(fact)

    def explore(self, run: Callable[[], Value]) -> Tree[Value]:
        """Run the function once per feasible path and return the decision tree."""
        root: Tree[Value] | None = None
        waiting: list[list[Decision]] = [[]]
        while waiting and self.counts.paths < self.path_budget:
            self._prefix = waiting.pop()
            end: Tree[Value]
            with self._path():
                try:
                    end = Leaf(run())
                    if len(self._decisions) < len(self._prefix):
                        raise NotModelled("the code does not go the same way when it is run again")
                    self.counts.paths += 1
                except BudgetExhausted as exhausted:
                    end = Unfinished(str(exhausted))
                    self.counts.unfinished += 1
            for index in range(len(self._prefix), len(self._decisions)):
                decision = self._decisions[index]
                if not decision.forced:
                    alternative = replace(decision, taken=not decision.taken)
                    waiting.append([*self._decisions[:index], alternative])
            root = insert(root, self._decisions, end)
        self.counts.unfinished += len(waiting)
        assert root is not None
        return root

    @contextmanager
    def _path(self) -> Iterator[None]:
        self._decisions = []
        self._model = None
        self._pending = [*self.assumptions, *self.facts]
        self._solver.push()
        try:
            with deciding(self.decide):
                yield
        finally:
            self._solver.pop()

    def decide(self, condition: z3.BoolRef) -> bool:
        """The truth value that this run takes for a condition."""
        simplified = self._simplified(condition)
        if simplified.truth is not None:
            return simplified.truth
        condition = simplified.condition
        index = len(self._decisions)
        if index < len(self._prefix):
            decision = self._prefix[index]
            self._model = None
            if decision.condition is not condition and not decision.condition.eq(condition):
                raise NotModelled("the code does not decide the same way when it is run again")
        else:
            decision = self._new_decision(condition)
        self._decisions.append(decision)
        self._pending.append(condition if decision.taken else z3.Not(condition))
        return decision.taken

    def _simplified(self, condition: z3.BoolRef) -> _Simplified:
        # Runs repeat the same comparisons.
        simplified = self._simplifications.get(condition.get_id())
        if simplified is None:
            simple = z3.simplify(condition)
            truth = True if z3.is_true(simple) else False if z3.is_false(simple) else None
            simplified = _Simplified(condition, simple, truth)
            self._simplifications[condition.get_id()] = simplified
        return simplified

    def _new_decision(self, condition: z3.BoolRef) -> Decision:
        model = self._model or self._model_with()
        if model is None:
            raise BudgetExhausted("the assumptions contradict each other")
        holds = z3.is_true(model.eval(condition, True))
        alternative = self._model_with(z3.Not(condition) if holds else condition)
        if alternative is None:
            self._model = model
            return Decision(condition, holds, forced=True)
        self._model = model if holds else alternative
        return Decision(condition, taken=True, forced=False)

    def _model_with(self, *conditions: z3.BoolRef) -> z3.ModelRef | None:
        self.counts.queries += 1
        self._solver.add(*self._pending)
        self._pending.clear()
        self._solver.push()
        self._solver.add(*conditions)
        answer = self._solver.check()
        model = self._solver.model() if answer == z3.sat else None
        reason = self._solver.reason_unknown() if answer == z3.unknown else ""
        self._solver.pop()
        if answer == z3.unknown:
            raise BudgetExhausted(f"z3 gave up: {reason}")
        return model

    def _drop_model_unless(self, condition: z3.BoolRef) -> None:
        if self._model is not None and not z3.is_true(self._model.eval(condition, True)):
            self._model = None
