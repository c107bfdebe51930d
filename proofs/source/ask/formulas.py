"""Turn the paths of a small function into a formula that a person can read.

The paths under which something happens are a disjunction of conjunctions. Conjuncts and disjuncts
that the rest and the premises imply are dropped one by one, and each comparison is written with one
side of its terms on the left and the other on the right. The caller proves the result equal to the
paths again, with both solvers: nothing here is trusted.
"""

from __future__ import annotations

from collections.abc import Sequence

import z3

Conjunction = list[z3.BoolRef]


def simplest(
    premises: Sequence[z3.BoolRef], paths: Sequence[Sequence[z3.BoolRef]], context: z3.Context
) -> list[Conjunction]:
    """An equivalent disjunction of as few and as short conjunctions as dropping gives."""
    whole = disjunction(paths, context)
    kept: list[Conjunction] = []
    for path in paths:
        conjunction = list(path)
        for literal in list(path):
            shorter = [literal_left for literal_left in conjunction if literal_left is not literal]
            if _implies([*premises, *shorter], whole):
                conjunction = shorter
        kept.append(conjunction)
    false = z3.BoolVal(False, context)
    kept = [conjunction for conjunction in kept if not _implies([*premises, *conjunction], false)]
    for conjunction in list(kept):
        rest = [path for path in kept if path is not conjunction]
        if rest and _implies([*premises, *conjunction], disjunction(rest, context)):
            kept = rest
    return kept


def disjunction(paths: Sequence[Sequence[z3.BoolRef]], context: z3.Context) -> z3.BoolRef:
    """The paths as one condition."""
    false = z3.BoolVal(False, context)
    true = z3.BoolVal(True, context)
    return z3.Or(false, *(z3.And(true, *path) for path in paths))


def _implies(premises: Sequence[z3.BoolRef], conclusion: z3.BoolRef) -> bool:
    solver = z3.SolverFor("QF_UFLIA", ctx=conclusion.ctx)
    solver.set("random_seed", 0)
    solver.set("rlimit", 1_000_000)
    solver.add(*premises)
    solver.add(z3.Not(conclusion))
    return bool(solver.check() == z3.unsat)


def written(paths: Sequence[Sequence[z3.BoolRef]]) -> str:
    """The disjunction in words: ``never``, ``always``, or its comparisons."""
    if not paths:
        return "never"
    if any(not path for path in paths):
        return "always"
    texts = sorted(" and ".join(sorted(_literal(atom) for atom in path)) for path in paths)
    if len(texts) == 1:
        return texts[0]
    return " or ".join(f"({text})" for text in texts)


def _literal(literal: z3.BoolRef) -> str:
    if z3.is_not(literal):
        inner = literal.arg(0)
        if z3.is_not(inner):
            return _literal(inner.arg(0))
        if z3.is_const(inner):
            return f"not {inner}"
        return _comparison(inner, negated=True)
    if z3.is_const(literal):
        return str(literal)
    return _comparison(literal, negated=False)


def _comparison(atom: z3.BoolRef, *, negated: bool) -> str:
    """A linear comparison as ``smaller side <= larger side`` with positive terms only."""
    kinds = {
        z3.Z3_OP_LE: "<=",
        z3.Z3_OP_LT: "<",
        z3.Z3_OP_GE: ">=",
        z3.Z3_OP_GT: ">",
        z3.Z3_OP_EQ: "==",
    }
    operator = kinds.get(atom.decl().kind())
    if operator is None:
        return f"not ({atom})" if negated else str(atom)
    difference, constant = _linear(atom.arg(1)), 0
    for name, factor in _linear(atom.arg(0)).items():
        difference[name] = difference.get(name, 0) - factor
    constant = difference.pop("", 0)
    if operator == "==":
        left, right = _sides(difference, constant)
        return f"{left} {'!=' if negated else '=='} {right}"
    if operator in (">=", ">"):
        difference = {name: -factor for name, factor in difference.items()}
        constant, operator = -constant, "<=" if operator == ">=" else "<"
    if negated:
        # not (0 <= d) is 0 < -d, and not (0 < d) is 0 <= -d.
        difference = {name: -factor for name, factor in difference.items()}
        constant, operator = -constant, "<" if operator == "<=" else "<="
    if operator == "<":
        constant -= 1
    left, right = _sides(difference, constant)
    positive = [name for name, factor in difference.items() if factor > 0]
    if len(positive) == 1 and constant <= 0 and difference[positive[0]] == 1:
        return f"{right} >= {left}"
    return f"{left} <= {right}"


def _sides(difference: dict[str, int], constant: int) -> tuple[str, str]:
    small = [(name, -factor) for name, factor in difference.items() if factor < 0]
    large = [(name, factor) for name, factor in difference.items() if factor > 0]
    return _sum(small, max(-constant, 0)), _sum(large, max(constant, 0))


def _sum(terms: list[tuple[str, int]], constant: int) -> str:
    words = [name if factor == 1 else f"{factor} * {name}" for name, factor in sorted(terms)]
    if constant or not words:
        words.append(str(constant))
    return " + ".join(words)


def _linear(value: z3.ArithRef) -> dict[str, int]:
    """Factors of a linear term by variable; the constant stands under the empty name."""
    if z3.is_int_value(value):
        return {"": value.as_long()}
    if z3.is_add(value):
        total: dict[str, int] = {}
        for part in value.children():
            for name, factor in _linear(part).items():
                total[name] = total.get(name, 0) + factor
        return total
    if z3.is_sub(value):
        first, *rest = value.children()
        total = _linear(first)
        for part in rest:
            for name, factor in _linear(part).items():
                total[name] = total.get(name, 0) - factor
        return total
    if z3.is_mul(value) and z3.is_int_value(value.arg(0)):
        factor = value.arg(0).as_long()
        return {name: factor * inner for name, inner in _linear(value.arg(1)).items()}
    return {str(value): 1}
