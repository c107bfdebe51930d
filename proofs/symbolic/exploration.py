"""Enumerate every feasible path of a function that runs on symbolic integers.

When the function asks a comparison for its truth value, the exploration decides: if only one answer
is feasible under the path so far, that one; else one answer now and the other on a later run of the
same function from its start. The outcome is a decision tree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import z3

from proofs.symbolic.integers import (
    Condition,
    NotModelled,
    SymbolicBool,
    SymbolicInt,
    deciding,
    truth_term,
)
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
    """A condition as simple as z3 makes it, and its truth value if it has one on all inputs.

    Keeping the original alive keeps its identifier its own.
    """

    original: SymbolicBool
    condition: z3.BoolRef
    truth: bool | None


@dataclass(frozen=True)
class _Model:
    """Inputs on which a path is run, and how many facts they were found under."""

    values: z3.ModelRef
    num_facts: int


@dataclass(frozen=True)
class _Waiting:
    """A path that is yet to be run: its decisions up to the one that differs, and inputs for it."""

    decisions: list[Decision]
    model: _Model | None


@dataclass
class Exploration:
    """Enumerate the paths of one function under assumptions.

    A path's feasibility is asked of one solver, which keeps what two paths have in common. Its
    answers only save work: a claim is proved with what it ruled out counted as a failure.

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
    _next: _Waiting = field(default_factory=lambda: _Waiting([], None))
    _decisions: list[Decision] = field(default_factory=list)
    _forks: list[Decision] = field(default_factory=list)
    _alternatives: dict[int, _Model] = field(default_factory=dict)
    _simplifications: dict[int, _Simplified] = field(default_factory=dict)
    _conditions: dict[int, z3.BoolRef] = field(default_factory=dict)
    _model: _Model | None = None
    _solver: z3.Solver = field(init=False)
    _asserted: list[tuple[Decision, int]] = field(default_factory=list)
    _num_assumed: int = 0
    _num_facts: int = 0

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

    def assume(self, *conditions: Condition) -> None:
        """Assume conditions on the inputs, before exploring."""
        self.assumptions.extend(truth_term(c, self.context) for c in conditions)

    def add_fact(self, condition: Condition) -> None:
        """Add something true of every input, such as a law of prefix counts."""
        fact = truth_term(condition, self.context)
        if fact.get_id() not in self._known_facts:
            self._known_facts.add(fact.get_id())
            self.facts.append(fact)

    def explore(self, run: Callable[[], Value]) -> Tree[Value]:
        """Run the function once per feasible path and return the decision tree."""
        root: Tree[Value] | None = None
        waiting = [_Waiting([], None)]
        while waiting and self.counts.paths < self.path_budget:
            self._begin(waiting.pop())
            end: Tree[Value]
            begun = self._next.decisions
            try:
                with deciding(self.decide):
                    end = Leaf(run())
                if len(self._decisions) < len(begun):
                    raise NotModelled("the code does not go the same way when it is run again")
                self.counts.paths += 1
            except BudgetExhausted as exhausted:
                end = Unfinished(str(exhausted))
                self.counts.unfinished += 1
            for index in range(len(begun), len(self._decisions)):
                decision = self._decisions[index]
                if not decision.forced:
                    other = replace(decision, taken=not decision.taken)
                    model = self._alternatives[index]
                    waiting.append(_Waiting([*self._decisions[:index], other], model))
            root = insert(root, self._decisions, end)
        self.counts.unfinished += len(waiting)
        assert root is not None
        return root

    def _begin(self, waiting: _Waiting) -> None:
        self._next = waiting
        self._decisions, self._forks, self._alternatives = [], [], {}
        self._model = None

    def decide(self, asked: SymbolicBool) -> bool:
        """The truth value that this run takes for a condition."""
        simplified = self._simplified(asked)
        if simplified.truth is not None:
            return simplified.truth
        condition = simplified.condition
        index, begun = len(self._decisions), self._next.decisions
        if index < len(begun):
            decision = begun[index]
            if decision.condition is not condition:
                raise NotModelled("the code does not decide the same way when it is run again")
            if index + 1 == len(begun):
                self._model = self._next.model
        else:
            decision = self._new_decision(condition)
        self._decisions.append(decision)
        if not decision.forced:
            self._forks.append(decision)
        return decision.taken

    def _simplified(self, asked: SymbolicBool) -> _Simplified:
        # Runs repeat the same comparisons.
        simplified = self._simplifications.get(id(asked))
        if simplified is None:
            simple = z3.simplify(asked.term)
            truth = True if z3.is_true(simple) else False if z3.is_false(simple) else None
            condition = self._conditions.setdefault(simple.get_id(), simple)
            simplified = _Simplified(asked, condition, truth)
            self._simplifications[id(asked)] = simplified
        return simplified

    def _new_decision(self, condition: z3.BoolRef) -> Decision:
        model = self._known_model() or self._model_with()
        if model is None:
            raise BudgetExhausted("the assumptions contradict each other")
        holds = z3.is_true(model.values.eval(condition, True))
        self._model = model
        other = self._model_with(z3.Not(condition) if holds else condition)
        if other is None:
            return Decision(condition, holds, forced=True)
        self._model, failing = (model, other) if holds else (other, model)
        self._alternatives[len(self._decisions)] = failing
        return Decision(condition, taken=True, forced=False)

    def _known_model(self) -> _Model | None:
        """The inputs that the path has been run on so far, unless newer facts rule them out."""
        model = self._model
        if model is None:
            return None
        newer = self.facts[model.num_facts :]
        if not all(z3.is_true(model.values.eval(fact, True)) for fact in newer):
            return None
        return replace(model, num_facts=len(self.facts)) if newer else model

    def _model_with(self, *conditions: z3.BoolRef) -> _Model | None:
        self.counts.queries += 1
        self._assert_path()
        self._solver.push()
        self._solver.add(*conditions)
        answer = self._solver.check()
        model = _Model(self._solver.model(), len(self.facts)) if answer == z3.sat else None
        reason = self._solver.reason_unknown() if answer == z3.unknown else ""
        self._solver.pop()
        if answer == z3.unknown:
            raise BudgetExhausted(f"z3 gave up: {reason}")
        return model

    def _assert_path(self) -> None:
        """Bring the solver from the last path that it was asked about to this one.

        What was forced follows from the rest, and is not asserted.
        """
        common = 0
        if self._num_assumed == len(self.assumptions):
            for (asserted, _), fork in zip(self._asserted, self._forks, strict=False):
                if asserted is not fork:
                    break
                common += 1
        if common < len(self._asserted):
            self._solver.pop(len(self._asserted) - common)
            _, self._num_facts = self._asserted[common]
            del self._asserted[common:]
        self._solver.add(*self.assumptions[self._num_assumed :])
        self._num_assumed = len(self.assumptions)
        for fork in self._forks[common:]:
            self._asserted.append((fork, self._num_facts))
            self._solver.push()
            self._solver.add(fork.condition if fork.taken else z3.Not(fork.condition))
        self._solver.add(*self.facts[self._num_facts :])
        self._num_facts = len(self.facts)
