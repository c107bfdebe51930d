"""Ask both solvers whether a condition on symbolic inputs always holds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import cvc5
import z3

from proofs.smt.solvers import Answer
from spec.verdict import Verdict

RESOURCE_LIMIT = 50_000_000
"""Resource units for one question; a whole function with three features takes some millions."""


@dataclass(frozen=True)
class Reply:
    """Both solvers' answers to the negated condition.

    Attributes:
        z3: z3's answer, ``unsat`` when the condition always holds.
        resources: z3's resource units.
        milliseconds: time that both took.
    """

    z3: Answer
    cvc5: Answer
    resources: int
    milliseconds: float

    @property
    def verdict(self) -> Verdict:
        """PROVED or REFUTED only where both agree."""
        if self.z3 == self.cvc5 == "unsat":
            return Verdict.PROVED
        if self.z3 == self.cvc5 == "sat":
            return Verdict.REFUTED
        return Verdict.UNKNOWN


_APPLIES_A_FUNCTION = "(Int) "
"""What z3 writes where a function of an integer is declared."""


def always(premises: Sequence[z3.BoolRef], condition: z3.BoolRef) -> Reply:
    """Whether the condition follows from the premises, for all integers."""
    started = time.perf_counter()
    solver = _solver(premises, condition)
    first = _answer(str(solver.check()))
    resources = solver.statistics().get_key_value("rlimit count")
    second = _ask_cvc5(solver.to_smt2())
    return Reply(first, second, resources, (time.perf_counter() - started) * 1000)


def counterexample(premises: Sequence[z3.BoolRef], condition: z3.BoolRef) -> z3.ModelRef | None:
    """Some model of the premises and the negated condition."""
    solver = _solver(premises, condition)
    return solver.model() if solver.check() == z3.sat else None


def smallest_counterexample(
    premises: Sequence[z3.BoolRef], condition: z3.BoolRef, sizes: Sequence[z3.ArithRef]
) -> z3.ModelRef | None:
    """A model of the premises and the negated condition in which the sizes are smallest.

    First their sum is minimised, then each in turn, so that the model does not depend on the
    solver's search.
    """
    solver = _solver(premises, condition)
    if solver.check() != z3.sat:
        return None
    model = solver.model()
    for goal in (z3.Sum(list(sizes)), *sizes):
        low, high = 0, model.eval(goal, model_completion=True).as_long()
        while low < high:
            middle = (low + high) // 2
            solver.push()
            solver.add(goal <= middle)
            if solver.check() == z3.sat:
                model = solver.model()
                high = model.eval(goal, model_completion=True).as_long()
            else:
                low = middle + 1
            solver.pop()
        solver.add(goal == high)
    assert solver.check() == z3.sat
    return solver.model()


def number_in(model: z3.ModelRef, value: z3.ArithRef) -> int:
    """The integer that a term has in a model."""
    number: int = model.eval(value, model_completion=True).as_long()
    return number


def _solver(premises: Sequence[z3.BoolRef], condition: z3.BoolRef) -> z3.Solver:
    # Without tactics before it z3's own core is three times as fast on these.
    solver = z3.SimpleSolver(ctx=condition.ctx)
    solver.set("random_seed", 0)
    solver.set("rlimit", RESOURCE_LIMIT)
    solver.add(*premises)
    solver.add(z3.Not(condition))
    return solver


def _ask_cvc5(smt2: str) -> Answer:
    solver = cvc5.Solver(cvc5.TermManager())
    solver.setLogic("QF_UFLIA")
    solver.setOption("seed", "0")
    solver.setOption("rlimit", str(RESOURCE_LIMIT))
    if _APPLIES_A_FUNCTION not in smt2:
        # Paths are nested choices, of which it then decides those that matter only. Between the
        # laws of masks, which are flat, it would search for longer.
        solver.setOption("decision", "justification")
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, smt2, "obligation")
    symbols = parser.getSymbolManager()
    printed = ""
    while not (command := parser.nextCommand()).isNull():
        printed += command.invoke(solver, symbols)
    return _answer(printed.strip())


def _answer(text: str) -> Answer:
    return "unsat" if text == "unsat" else "sat" if text == "sat" else "unknown"
