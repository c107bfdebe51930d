"""Run what the ledger rests on: the witnesses of claims, and what breaks assumptions."""

from __future__ import annotations

import inspect
from itertools import islice

from impl.faults.switches import faulty_parts
from impl.faults.worlds import world
from impl.reference.engine import Engine
from impl.target import RUNNERS
from impl.targets.functions import ReferenceTarget
from impl.targets.runs import ReferenceLoop
from impl.tensors import TensorSettings
from proofs.describe.cases import describe_case
from proofs.describe.scenarios import describe_scenario
from proofs.ledger.records import Breaking, Witnessed
from proofs.run.record import record
from proofs.search.functions.parts import CLAIMS_OF_PART, CheckedPart, findings_on
from proofs.search.functions.premises import premise_happens
from spec.claims.assumptions import Assumption, BreakingScenario
from spec.claims.texts import FunctionClaim, LoopClaim, loop_claim
from spec.functions.cases import BookCase, Case, FreeCase, GatherCase, RowRangeCase, WindowCase
from spec.monitor.monitor import LoopMonitor
from spec.monitor.residency.runners import compare_runners
from spec.record.steps import Step, Trace

MOST_STEPS = 50
"""Steps after which what has not been seen is not there; the traces here need a tenth of it."""


_PARTS_OF: dict[type[Case], tuple[CheckedPart, ...]] = {
    GatherCase: ("V1", "V2", "V1 with V2"),
    FreeCase: ("free", "free past the prompt"),
    BookCase: ("book", "book of unlike contents", "encoder_decoder_book"),
    WindowCase: ("window",),
    RowRangeCase: ("row_range",),
}
"""Parts that can be given a case of a kind."""


def _found(target: ReferenceTarget, claim_id: str, case: Case) -> set[str]:
    """Claims violated on any part that can contradict the claim on such a case."""
    return {
        finding.claim
        for part in _PARTS_OF[type(case)]
        if claim_id in CLAIMS_OF_PART[part]
        for finding in findings_on(target, part, case, TensorSettings())
    }


def run_function_witness(claim: FunctionClaim) -> Witnessed:
    """Run a claim's case on every part of the reference that can contradict the claim on it."""
    claim.witness.validate()
    violated = _found(ReferenceTarget(), claim.id, claim.witness)
    premises = int(premise_happens(claim.id, claim.witness))
    return Witnessed(describe_case(claim.witness), premises, tuple(sorted(violated)))


def run_loop_witness(claim: LoopClaim) -> Witnessed:
    """Run a claim's scenario with both runners' workers.

    Claims that rest on the assumption which the scenario breaks, if it breaks one, are not judged.
    """
    claim.witness.validate()
    premises: list[int] = []
    traces: list[Trace] = []
    violated: set[str] = set()
    for runner in RUNNERS:
        monitor = LoopMonitor(claim.witness, runner)
        recording = record(ReferenceLoop(), claim.witness, runner, monitor=monitor)
        traces.append(recording.trace)
        premises.append(monitor.premises[claim.id])
        violated |= {finding.claim for finding in recording.findings}
    violated |= {finding.claim for finding in compare_runners(*traces)}
    judged = (c for c in violated if claim.witness_without not in loop_claim(c).assumptions)
    if claim.id == "runners-agree":
        # No single monitor can count what takes two runs: both of them must read something.
        premises = [sum(map(_reads, trace.steps)) for trace in traces]
    return Witnessed(describe_scenario(claim.witness), min(premises), tuple(sorted(judged)))


def _reads(step: Step) -> bool:
    return step.kind == "pass" and step.worker is not None and bool(step.worker.target.rows)


def break_assumption(assumption: Assumption) -> Breaking | None:
    """Run the case that breaks a claim without the assumption; ``None`` if it has none."""
    breaking = assumption.on_functions
    if breaking is None:
        return None
    faults = [breaking.with_fault] if breaking.with_fault else []
    found = _found(ReferenceTarget(faults), breaking.claim, breaking.case)
    words = "; ".join([describe_case(breaking.case), *(f"with {fault}" for fault in faults)])
    return Breaking(words, breaking.claim, breaking.claim in found)


def break_loop_assumption(assumption: Assumption) -> Breaking | None:
    """Run the scenario, in the world that breaks the assumption if it names one.

    Without the assumption the claim is violated there, and with it it is not. Where the assumption
    is what lets a fault be seen, the fault is seen with it, and goes unseen without it.
    """
    breaking = assumption.on_runs
    if breaking is None:
        return None
    proper = _violated(breaking, "")
    broken = _violated(breaking, breaking.world)
    words = describe_scenario(breaking.scenario)
    claim = breaking.claim
    if breaking.world:
        words = f"{words}; {_in_words(breaking.world)}"
    if breaking.hides:
        words = f"{words}, and {breaking.hides} goes unseen"
        return Breaking(words, claim, claim in proper and claim not in broken)
    if breaking.world:
        return Breaking(words, claim, claim in broken and not proper)
    return Breaking(words, claim, claim in broken)


def _in_words(name: str) -> str:
    """What happens in a world: the first line of its docstring, as part of a sentence."""
    line = (inspect.getdoc(world(name)) or name).splitlines()[0]
    return line[0].lower() + line[1:].rstrip(".")


def violated_without(breaking: BreakingScenario) -> frozenset[str]:
    """All claims that are violated where the assumption does not hold."""
    return _violated(breaking, breaking.world)


def _violated(breaking: BreakingScenario, name: str) -> frozenset[str]:
    """Claims that both runners' runs violate, each up to the end or to the most steps."""
    parts = faulty_parts([breaking.hides] if breaking.hides else [])
    found: set[str] = set()
    for runner in RUNNERS:
        scenario = breaking.scenario
        if name:
            scenario, steps = world(name)(scenario, runner, parts)
        else:
            steps = Engine(scenario, parts, runner, record=True).steps()
        monitor = LoopMonitor(scenario, runner)
        for step in islice(steps, MOST_STEPS):
            found |= {finding.claim for finding in monitor.observe(step)}
            if monitor.settled or step.error is not None:
                break
    return frozenset(found)
