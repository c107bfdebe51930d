"""Scenarios that bring an engine to what a case about scheduling is about.

A case begins in the middle: so many tokens are computed, the book holds some entries. A scenario
begins at the start. What is computed becomes a prefix that is found; an entry that nobody holds was
left by a request that ended, and one that another request holds is held by one that still runs.
Whether a scenario gets there is for the engine that runs it to say, so that there may be several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from proofs.describe.words import counted
from spec.errors import InputError
from spec.functions.scheduling_cases import BookEntry, SchedulingCase
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest

_STEPS_BESIDE = 8
"""Tokens that a request generates which is there to take its part of a pass."""


@dataclass(frozen=True)
class Likeness:
    """A scenario for a case.

    Attributes:
        differs: where it is not the case itself, without a full stop each.
    """

    scenario: Scenario
    differs: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Others:
    """Requests that are there before the one of the case, and the pass before which that arrives.

    Attributes:
        arrival: when the request of the case arrives.
        num_tokens: what those that still run take of a pass.
        differs: what is to be said of them.
    """

    requests: tuple[ScenarioRequest, ...] = ()
    arrival: int = 0
    num_tokens: int = 0
    differs: tuple[str, ...] = ()


def runs_like(case: SchedulingCase) -> tuple[Likeness, ...]:
    """Legal scenarios for the case, the closest first; none for what a run cannot come to."""
    found: dict[Scenario, Likeness] = {}
    for likeness in _likenesses(case):
        try:
            likeness.scenario.validate()
        except InputError:
            continue
        found.setdefault(likeness.scenario, likeness)
    return tuple(found.values())


def _likenesses(case: SchedulingCase) -> Iterator[Likeness]:
    if any(entry.holder == "itself" for entry in case.entries):
        return  # What a request took before depends on how it came there.
    longest = max((feature.length for feature in case.features), default=0)
    # An engine needs a token budget for a step with its drafts, and for a whole item.
    least = max(case.scheduler_shift + 1, longest if case.whole_items else 0)
    for company in _all_others(case):
        for most in dict.fromkeys((case.token_budget, max(case.token_budget, least))):
            yield _likeness(case, company, most)
    if not case.entries:
        yield _likeness(case, _beside(case), case.token_budget)


def _likeness(case: SchedulingCase, company: _Others, most: int) -> Likeness:
    """A scenario in which a pass has ``most`` tokens for the request of the case."""
    differs = list(company.differs)
    cuts = most > case.token_budget or (company.num_tokens > 0 and not _decodes(company))
    if cuts:
        differs.append(
            f"a pass has more tokens, and a threshold on long prefills gives the request "
            f"{case.token_budget}"
        )
    rows = [f.num_rows for r in company.requests for f in r.features]
    rows += [feature.num_rows for feature in case.features]
    encoder_budget = max([case.encoder_budget, *rows, 1])
    if encoder_budget > case.encoder_budget:
        differs.append(
            f"the encoder computes {counted(encoder_budget, 'row')} in a pass, not "
            f"{case.encoder_budget}: each item has to be encoded once"
        )
    if case.num_computed_tokens:
        differs.append("the tokens that are computed before are a prefix that is found")
    request = ScenarioRequest(
        case.prefill_len,
        case.features,
        arrival=company.arrival,
        prefix_hits=(case.num_computed_tokens,) if case.num_computed_tokens else (),
    )
    requests = (*company.requests, request)
    drafts = case.scheduler_shift
    config = EngineConfig(
        most + company.num_tokens,
        encoder_budget,
        max(case.cache_size, 1),
        num_kv_blocks=sum(r.most_tokens + 2 * drafts + 2 for r in requests),
        scheduler_lookahead=case.scheduler_shift,
        gather_lookahead=min(case.scheduler_shift, 1),
        num_speculative_tokens=drafts,
        whole_items=case.whole_items,
        long_prefill_token_threshold=case.token_budget if cuts else 0,
        prefix_caching=bool(case.num_computed_tokens),
    )
    return Likeness(Scenario(config, requests), tuple(differs))


def _all_others(case: SchedulingCase) -> Iterator[_Others]:
    """Requests that leave the entries: as the case has it, or all of them by ones that ended."""
    if not case.entries:
        yield _Others()
        return
    held = [entry for entry in case.entries if entry.holder == "another"]
    left = [entry for entry in case.entries if entry.holder == "nobody"]
    before = "requests before it leave the entries of the book"
    yield _leaving(case, left, held, (before,))
    if held:
        ended = "what another request holds was left by one that ended"
        yield _leaving(case, case.entries, (), (before, ended))


def _leaving(
    case: SchedulingCase,
    left: Sequence[BookEntry],
    held: Sequence[BookEntry],
    differs: tuple[str, ...],
) -> _Others:
    features = {feature.identifier: feature for feature in case.features}
    made: list[ScenarioRequest] = []
    arrival = 0
    for entry in left:
        content = features.get(entry.identifier, Feature(0, entry.num_rows, entry.identifier))
        made.append(ScenarioRequest(content.length, (replace(content, offset=0),), arrival=arrival))
        # Its passes, and two for its output and its end.
        arrival += -(-content.length // case.token_budget) + 2
    for entry in held:
        made.append(_holder(entry, case.token_budget, arrival))
    tokens = len(held) * case.token_budget
    return _Others(tuple(made), arrival + (1 if held else 0), tokens, differs)


def _holder(entry: BookEntry, tokens: int, arrival: int) -> ScenarioRequest:
    """A request in the middle of an item: all rows come first, and tokens without any follow."""
    mask = (True,) * entry.num_rows + (False,) * 3 * tokens
    feature = Feature(0, len(mask), entry.identifier, mask)
    return ScenarioRequest(len(mask), (feature,), arrival=arrival)


def _beside(case: SchedulingCase) -> _Others:
    """A request of text that generates, so that a pass has fewer tokens than it could have."""
    text = ScenarioRequest(1, max_tokens=_STEPS_BESIDE)
    taken = case.scheduler_shift + 1
    difference = (
        f"another request generates beside it and takes {counted(taken, 'token')} of each pass"
    )
    return _Others((text,), 2, taken, (difference,))


def _decodes(company: _Others) -> bool:
    """Whether what runs beside the request is a step of decoding."""
    return any(request.max_tokens > 1 for request in company.requests)
