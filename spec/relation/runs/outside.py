"""Whether a recorded run lies in the relation, and where it leaves it.

Where nothing is reported, each step of the run is a sequence of transitions of the relation in
every projection, so that the theorems of :mod:`proofs.theorems.runs` hold of it. A step that is
reported is *outside the proof*: the conjunct says what the engine did that the relation does not
know.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from spec.record.scenario import Scenario
from spec.record.steps import Step, Trace
from spec.relation.runs.cross_attention_run import ItemProjection, ItemRun, ItemTaken
from spec.relation.runs.projection import Projection, Taken
from spec.relation.runs.run import Run

AnyTaken: TypeAlias = Taken | ItemTaken
"""A transition of the relation of decoder-only, or of encoder-decoder models."""


@dataclass(frozen=True)
class OutsideStep:
    """A step of a run that is not in the relation.

    Attributes:
        step: index of the step in the trace.
        place: the step as a person names it: ``pass 3``.
        request: the request of the projection.
        feature: index of its feature.
        described: the feature as a person writes it.
        taken: the transition with the states before and after it.
        conjunct: the first conjunct that differs.
    """

    step: int
    place: str
    request: int
    feature: int
    described: str
    taken: AnyTaken
    conjunct: str

    def describe(self) -> str:
        """The step as one line."""
        arguments = ", ".join(f"{name} {value}" for name, value in self.taken.arguments.items())
        before = ""
        if self.conjunct.startswith("state."):
            field = self.conjunct.removeprefix("state.")
            before = f"; the relation says {getattr(self.taken.before, field)}"
        return (
            f"{self.place}, request {self.request}, {self.described}: {self.taken.transition}"
            f"{f' ({arguments})' if arguments else ''} differs in {self.conjunct}{before}"
        )


def why_not_covered(scenario: Scenario) -> str | None:
    """Why the relation says nothing of runs of the scenario; ``None`` where it does."""
    if not scenario.content_is_hashed:
        return (
            "the scenario breaks the assumption hash-is-content: the rows of an entry are whatever "
            "its last reader says"
        )
    if not any(request.all_features() for request in scenario.requests):
        return "no request has a feature"
    return None


def project(trace: Trace) -> Iterator[tuple[int, Step, int, int, str, tuple[AnyTaken, ...]]]:
    """Every step of a run in each projection.

    Yields:
        For each step and each request with each of its features: index of the step, the step,
        request, feature, the feature as a person writes it, and the transitions taken.
    """
    run = _run_of(trace.scenario)
    for index, step in enumerate(trace.steps):
        if not run.observe(step):
            return
        projections: list[Projection | ItemProjection] = [*run.projections.values()]
        for projection in projections:
            taken: tuple[AnyTaken, ...] = tuple(projection.taken)
            projection.taken.clear()
            feature = projection.feature
            yield index, step, projection.request, feature.index, feature.describe(), taken


def outside_in(run: Run | ItemRun, index: int, step: Step) -> list[OutsideStep]:
    """Where the step that a run has just observed is not in the relation.

    Args:
        run: the run; the transitions that it took are forgotten.
        index: index of the step in the run.
        step: the step.
    """
    found: list[OutsideStep] = []
    projections: list[Projection | ItemProjection] = [*run.projections.values()]
    for projection in projections:
        for taken in projection.taken:
            if taken.differs:
                found += _described(projection, index, step, taken)
        projection.taken.clear()
    return found


def _described(
    projection: Projection | ItemProjection, index: int, step: Step, taken: AnyTaken
) -> Iterator[OutsideStep]:
    where = {"pass": "pass", "update": "update of pass", "event": "before pass"}[step.kind]
    number = step.before if step.kind == "event" else step.index
    feature = projection.feature
    for conjunct in taken.differs:
        yield OutsideStep(
            index,
            f"{where} {number}",
            projection.request,
            feature.index,
            feature.describe(),
            taken,
            conjunct,
        )


def outside_the_proof(trace: Trace) -> tuple[OutsideStep, ...]:
    """The steps of a run that are not in the relation; empty where all are.

    A step that broke off with an error ends the run: what it left half done is not looked at. Of
    runs for which :func:`why_not_covered` has a reason nothing is reported.

    Raises:
        InputError: a step names a feature that the scenario does not have.
    """
    if why_not_covered(trace.scenario) is not None:
        return ()
    run, found = _run_of(trace.scenario), []
    for index, step in enumerate(trace.steps):
        if not run.observe(step):
            break
        found += outside_in(run, index, step)
    return tuple(found)


def _run_of(scenario: Scenario) -> Run | ItemRun:
    return ItemRun(scenario) if scenario.config.is_encoder_decoder else Run(scenario)
