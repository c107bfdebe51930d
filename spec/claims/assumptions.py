"""Every assumption: what is taken for granted of the engine or the world, and what breaks without.

Two of them are not needed for the reference in runs, since every pass asks again for all that it
reads: falls of progress beyond drafts (``progress-falls-by-drafts-only``) and resets of the cache
while requests run.
"""

from __future__ import annotations

from dataclasses import dataclass

from spec.errors import InputError
from spec.functions.cases import BookCase, BookOperation, Case, FreeCase, Progress, WindowCase
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest


@dataclass(frozen=True)
class BreakingCase:
    """A case on which single functions break a claim where an assumption does not hold.

    Attributes:
        claim: id of the claim.
        case: the case; it need not be legal.
        with_fault: where the engine keeps a second guard in front of the assumption, the switch
            that removes that guard.
    """

    claim: str
    case: Case
    with_fault: str | None = None


@dataclass(frozen=True)
class BreakingScenario:
    """A scenario on which runs break a claim where an assumption does not hold.

    Attributes:
        claim: id of the claim.
        scenario: the scenario; it need not be legal.
        world: a world of :mod:`impl.faults.worlds` that breaks the assumption, where a scenario
            alone cannot.
        hides: a switch of :mod:`impl.faults.switches` that breaks the claim on the scenario, which
            goes unseen without the assumption; empty where the claim itself breaks without it.
    """

    claim: str
    scenario: Scenario
    world: str = ""
    hides: str = ""


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """Something that proofs and claims take for granted.

    Attributes:
        id: stable name.
        sentence: what is assumed.
        without: what happens otherwise.
        broken_by: ablations that drop it in a proof, as ``group.obligation/ablation``.
        on_functions: what shows the need of it on single functions.
        on_runs: what shows the need of it in runs.
    """

    id: str
    sentence: str
    without: str
    broken_by: tuple[str, ...] = ()
    on_functions: BreakingCase | None = None
    on_runs: BreakingScenario | None = None


_A = Feature(0, 4, "A")

TABLE = (
    Assumption(
        id="features-sorted-disjoint",
        sentence="a request's features are sorted by offset and do not overlap",
        without="A[0,2) with B[0,1) nested after it: a search of [1,2) by bisection misses A",
        broken_by=("window.search-selects-overlapping/nested-features",),
        on_functions=BreakingCase(
            "window-exact", WindowCase((Feature(0, 2, "A"), Feature(0, 1, "B")), 1, 2)
        ),
    ),
    Assumption(
        id="features-not-empty",
        sentence="every feature spans at least one token",
        without="an empty feature strictly inside the window passes the overlap test, and its "
        "slice is empty",
        broken_by=(
            "window.overlap-is-meeting/empty-feature",
            "slices.never-empty/empty-feature",
        ),
    ),
    Assumption(
        id="step-not-empty",
        sentence="a scheduled request runs at least one token",
        without="an empty range strictly inside a feature passes the overlap test, and the "
        "slice is empty",
        broken_by=("window.overlap-is-meeting/empty-step", "slices.never-empty/empty-step"),
    ),
    Assumption(
        id="features-in-prompt",
        sentence="every feature ends at or before the prompt's end, where drafting begins",
        without="A[50,150) at 160 computed tokens of which 12 are placeholders and 11 drafts: a "
        "free that ignores placeholders lets A go although progress can fall to 149",
        broken_by=("lifetime.placeholders-needless-in-prompt/features-beyond-prompt",),
        on_functions=BreakingCase(
            "freed-not-needed",
            FreeCase((Feature(50, 100, "A"),), 100, (Progress(160, 12, 11),)),
            "free-ignores-placeholders",
        ),
    ),
    Assumption(
        id="hash-is-content",
        sentence="an identifier stands for one content, hence for one number of rows",
        without="X stored with 2 rows and let go by a request whose mask has 4: slots drift where "
        "the book credits the request's own count",
        on_functions=BreakingCase(
            "slots-conserved",
            BookCase(
                8,
                ((Feature(0, 2, "X"),), (Feature(0, 4, "X"),)),
                (
                    BookOperation("take", 0),
                    BookOperation("take", 1),
                    BookOperation("drop", 0),
                    BookOperation("drop", 1),
                ),
                content_is_hashed=False,
            ),
            "own-size-free",
        ),
        # X of one picture is read by a request that shows another one under the same hash.
        on_runs=BreakingScenario(
            "fresh-tensor",
            Scenario(
                EngineConfig(8, 4, 4, 12),
                (
                    ScenarioRequest(4, (Feature(0, 2, "X"),), contents=("cat",)),
                    ScenarioRequest(4, (Feature(0, 2, "X"),), contents=("dog",), arrival=1),
                ),
            ),
        ),
    ),
    Assumption(
        id="drafts-are-placeholders",
        sentence="every draft in flight was counted as a placeholder",
        without="10 computed tokens, no placeholder, 1 draft in flight: a feature that ends at 10 "
        "is let go although progress can fall to 9",
        broken_by=("lifetime.margin-zero-with-placeholders/drafts-not-counted",),
    ),
    Assumption(
        id="progress-falls-by-drafts-only",
        sentence="progress never falls below what is confirmed: only drafts in flight are rejected",
        without="a failed KV load that lowers progress below a freed feature's end reads it again",
        broken_by=("lifetime.margin-zero-without-rollback/progress-falls",),
    ),
    Assumption(
        id="notices-follow-the-drafter",
        sentence="an eviction notice reaches the worker after the drafter of the step in which the "
        "reference was dropped",
        without="dropped when scheduled and evicted before the same step's drafter: the drafter "
        "reads [c+1, c+n+1) of a feature that ends at c+n",
        broken_by=("lifetime.notice-after-drafter/notice-before-drafter",),
    ),
    Assumption(
        id="outputs-in-order",
        sentence="the worker learns of frees and encodes through outputs only, and executes them "
        "in order",
        without="a notice that overtakes the output before it drops a tensor that this output "
        "still reads; running the worker at schedule time would then hide what happens",
        on_runs=BreakingScenario(
            "views-agree",
            Scenario(
                EngineConfig(1, 2, 2, 16),
                (
                    ScenarioRequest(2, (Feature(0, 2, "A"),), abort=2),
                    ScenarioRequest(2, (Feature(0, 2, "B"),), arrival=2),
                ),
            ),
            world="notices-overtake",
        ),
    ),
    Assumption(
        id="budgets-fixed",
        sentence="token, encoder and cache sizes are those of the configuration in every pass",
        without="a budget that is chosen anew for each pass lets any stuck state go on sooner or "
        "later, so that no stall is ever seen",
        on_runs=BreakingScenario(
            "no-stall",
            Scenario(
                EngineConfig(2, 1, 2, 16, scheduler_lookahead=1),
                (ScenarioRequest(2, (Feature(0, 1, "A"), Feature(1, 1, "B"))),),
            ),
            world="encoder-budget-varies",
            hides="shifted-cut",
        ),
    ),
    Assumption(
        id="arrivals-finite",
        sentence="requests, aborts, continuations and resets come to an end",
        without="a state that stands still until the next event is no stall, and one can always "
        "wait for another event",
        on_runs=BreakingScenario(
            "no-stall",
            Scenario(
                EngineConfig(2, 8, 1, 16),
                (ScenarioRequest(2, (Feature(0, 1, "A"), Feature(1, 1, "B"))),),
            ),
            world="arrivals-go-on",
            hides="deferred-free-margin",
        ),
    ),
    Assumption(
        id="sampling-yields",
        sentence="a step that reaches the end of what is known yields at least one token",
        without="a request that never gets a token never ends",
        on_runs=BreakingScenario(
            "no-stall",
            Scenario(EngineConfig(1, 1, 1, 4), (ScenarioRequest(1),)),
            world="nothing-is-sampled",
        ),
    ),
    Assumption(
        id="everything-fits-alone",
        sentence="one whole request with its drafts fits the KV blocks, each item the cache and "
        "the encoder budget, and with whole items the token budget",
        without="A[0,4) with a cache of 3 rows is refused for ever",
        on_runs=BreakingScenario(
            "no-stall", Scenario(EngineConfig(8, 8, 3, 10), (ScenarioRequest(5, (_A,)),))
        ),
    ),
    Assumption(
        id="scheduler-looks-as-far",
        sentence="the scheduler's shift is at least the gather's look-ahead",
        without="A[2,6) behind a chunk of 2: the drafter reads its first row, and nobody asked",
        on_runs=BreakingScenario(
            "need-agrees",
            Scenario(
                EngineConfig(2, 4, 4, 12, gather_lookahead=1, num_speculative_tokens=1),
                (ScenarioRequest(7, (Feature(2, 4, "A"),)),),
            ),
        ),
    ),
)

ASSUMPTIONS: dict[str, Assumption] = {assumption.id: assumption for assumption in TABLE}
"""All assumptions, by id."""


def assumption(assumption_id: str) -> Assumption:
    """The assumption with the given id.

    Raises:
        InputError: there is none; the message lists those that exist.
    """
    if assumption_id not in ASSUMPTIONS:
        raise InputError(
            f"unknown assumption {assumption_id!r}; known: {', '.join(sorted(ASSUMPTIONS))}"
        )
    return ASSUMPTIONS[assumption_id]
