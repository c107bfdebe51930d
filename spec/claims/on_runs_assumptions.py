"""What the claims on the running loop take for granted, and what breaks without it.

Assumptions on single functions are in :mod:`spec.claims.on_functions_assumptions`. Two of them are
not needed for the reference in the loop, since every pass asks again for all that it reads: falls
of progress beyond drafts (``progress-falls-by-drafts-only``) and resets of the cache while requests
run.
"""

from __future__ import annotations

from dataclasses import dataclass

from spec.claims.on_functions_assumptions import BY_ID as ON_FUNCTIONS
from spec.errors import InputError
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest


@dataclass(frozen=True)
class LoopAssumption:
    """Something that claims on the loop take for granted about the engine or the world.

    Attributes:
        id: stable name.
        sentence: what is assumed.
        without: what happens otherwise.
        claim: id of a claim that breaks without it, if a trace can show that.
        scenario: a scenario that breaks it; it need not be legal.
        world: a world of :mod:`impl.faults.worlds` that breaks the assumption, where a scenario
            alone cannot.
        hides: a switch of :mod:`impl.faults.switches` that breaks the claim on the scenario, which
            goes unseen without the assumption; empty where the claim itself breaks without it.
    """

    id: str
    sentence: str
    without: str
    claim: str | None = None
    scenario: Scenario | None = None
    world: str = ""
    hides: str = ""


_A = Feature(0, 4, "A")

LOOP_ASSUMPTIONS: tuple[LoopAssumption, ...] = (
    LoopAssumption(
        id="outputs-in-order",
        sentence="the worker learns of frees and encodes through outputs only, and executes them "
        "in order",
        without="a notice that overtakes the output before it drops a tensor that this output "
        "still reads; running the worker at schedule time would then hide what happens",
        claim="views-agree",
        scenario=Scenario(
            EngineConfig(1, 2, 2, 16),
            (
                ScenarioRequest(2, (Feature(0, 2, "A"),), abort=2),
                ScenarioRequest(2, (Feature(0, 2, "B"),), arrival=2),
            ),
        ),
        world="notices-overtake",
    ),
    LoopAssumption(
        id="budgets-fixed",
        sentence="token, encoder and cache sizes are those of the configuration in every pass",
        without="a budget that is chosen anew for each pass lets any stuck state go on sooner or "
        "later, so that no stall is ever seen",
        claim="no-stall",
        scenario=Scenario(
            EngineConfig(2, 1, 2, 16, scheduler_lookahead=1),
            (ScenarioRequest(2, (Feature(0, 1, "A"), Feature(1, 1, "B"))),),
        ),
        world="encoder-budget-varies",
        hides="shifted-cut",
    ),
    LoopAssumption(
        id="arrivals-finite",
        sentence="requests, aborts, continuations and resets come to an end",
        without="a state that stands still until the next event is no stall, and one can always "
        "wait for another event",
        claim="no-stall",
        scenario=Scenario(
            EngineConfig(2, 8, 1, 16),
            (ScenarioRequest(2, (Feature(0, 1, "A"), Feature(1, 1, "B"))),),
        ),
        world="arrivals-go-on",
        hides="deferred-free-margin",
    ),
    LoopAssumption(
        id="sampling-yields",
        sentence="a step that reaches the end of what is known yields at least one token",
        without="a request that never gets a token never ends",
        claim="no-stall",
        scenario=Scenario(EngineConfig(1, 1, 1, 4), (ScenarioRequest(1),)),
        world="nothing-is-sampled",
    ),
    LoopAssumption(
        id="everything-fits-alone",
        sentence="one whole request with its drafts fits the KV blocks, each item the cache and "
        "the encoder budget, and with whole items the token budget",
        without="A[0,4) with a cache of 3 rows is refused for ever",
        claim="no-stall",
        scenario=Scenario(EngineConfig(8, 8, 3, 10), (ScenarioRequest(5, (_A,)),)),
    ),
    LoopAssumption(
        id="scheduler-looks-as-far",
        sentence="the scheduler's shift is at least the gather's look-ahead",
        without="A[2,6) behind a chunk of 2: the drafter reads its first row, and nobody asked",
        claim="need-agrees",
        scenario=Scenario(
            EngineConfig(2, 4, 4, 12, gather_lookahead=1, num_speculative_tokens=1),
            (ScenarioRequest(7, (Feature(2, 4, "A"),)),),
        ),
    ),
    LoopAssumption(
        id="hash-is-content",
        sentence="an identifier stands for one content, hence for one number of rows",
        without="X of one picture is read by a request that shows another one under the same hash",
        claim="fresh-tensor",
        scenario=Scenario(
            EngineConfig(8, 4, 4, 12),
            (
                ScenarioRequest(4, (Feature(0, 2, "X"),), contents=("cat",)),
                ScenarioRequest(4, (Feature(0, 2, "X"),), contents=("dog",), arrival=1),
            ),
        ),
    ),
)

BY_ID: dict[str, LoopAssumption] = {assumption.id: assumption for assumption in LOOP_ASSUMPTIONS}

ALL_IDS = frozenset((*ON_FUNCTIONS, *BY_ID))
"""Ids of all assumptions, those of :mod:`spec.claims.on_functions_assumptions` included."""


def loop_assumption(assumption_id: str) -> LoopAssumption:
    """The assumption on the loop with the given id.

    Raises:
        InputError: there is none; the message lists those that exist.
    """
    known = BY_ID.get(assumption_id)
    if known is None:
        raise InputError(
            f"unknown assumption on the loop {assumption_id!r}; known: {', '.join(sorted(BY_ID))}"
        )
    return known
