"""The rule by which encoder inputs are scheduled in one call, over a symbolic call.

It is put together from the guards of :mod:`spec.rules`, for the rules of any release
(:mod:`spec.rules.releases`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from proofs.source.passes.call_scenario import CallScenario
from spec.algebra import BoolTerm, IntTerm, and_, eq, ite, min_, not_, or_
from spec.rules.chunk_ends import is_cut_off_whole, refused_cut, whole_item_cut
from spec.rules.encoder_inputs import has_room, is_asked_for, window_end
from spec.rules.geometry import row_range, slice_bounds
from spec.rules.releases import REFERENCE, ReleaseRules, in_tokens, rules_of
from spec.rules.stopping_passes import tokens_after_reservation


@dataclass(frozen=True)
class KnownRules:
    """Rules that a release's calls may equal.

    Attributes:
        words: how they are told in reports.
        rules: the rules, of which those on cuts, whole items and the boundary are compared.
    """

    words: str
    rules: ReleaseRules


KNOWN_RULES = (
    KnownRules("ends at a refused feature, and the shift before a whole item", rules_of("0.33.0")),
    KnownRules(
        "ends at a refused feature, and at a whole item", replace(REFERENCE, extends_items=False)
    ),
    KnownRules(
        "ends the shift before a refused feature or a whole item, which may be split at its start",
        rules_of("0.32.0"),
    ),
    KnownRules(
        "ends the shift before a refused feature or an uncached whole item, which may be split at "
        "its start",
        rules_of("0.31.0"),
    ),
    KnownRules(
        "ends the shift before a refused feature or an uncached whole item, which may be split at "
        "its start; rows past the chunk need nothing",
        rules_of("0.27.1"),
    ),
)
"""The rules of 0.33.0, of the reference's cuts, of 0.32, of 0.28 to 0.31, and of those before."""


@dataclass(frozen=True)
class Fate:
    """What becomes of one feature: conditions, of which at most one holds.

    Attributes:
        chosen: it is encoded.
        loaded: it is loaded from a store.
        duplicate: its hash was chosen or loaded before it.
        hit: its entry is there, and is referenced now.
        cut: the chunk ends before it, because it is whole.
        refused: the chunk ends before it, because it has no room.
    """

    chosen: BoolTerm
    loaded: BoolTerm
    duplicate: BoolTerm
    hit: BoolTerm
    cut: BoolTerm
    refused: BoolTerm

    @property
    def taken(self) -> BoolTerm:
        """Whether the book will have a new entry for it."""
        return or_(self.chosen, self.loaded)


@dataclass(frozen=True)
class Expected:
    """What the rule makes of a call."""

    fates: tuple[Fate, ...]
    num_tokens: IntTerm
    encoder_budget: IntTerm


def expected(scenario: CallScenario, rules: ReleaseRules) -> Expected:
    """Feature by feature, up to the first that is refused or cut off."""
    start, shift = scenario.start, scenario.shift
    asked = tokens = scenario.asked
    fates: list[Fate] = []
    for index, offset in enumerate(scenario.features.offsets):
        fate = _fate(scenario, rules, index, fates)
        before_refused = refused_cut(offset, start, asked, in_tokens(rules.cut_shift, shift))
        before_whole = whole_item_cut(offset, start, in_tokens(rules.whole_cut_shift, shift))
        # An item that lies past the chunk ends it where it ends anyway.
        before_whole = min_(asked, before_whole)
        tokens = ite(fate.cut, before_whole, ite(fate.refused, before_refused, tokens))
        fates.append(fate)
    if scenario.has_reservation:
        tokens = tokens_after_reservation(start, tokens, scenario.known, shift)
    return Expected(tuple(fates), tokens, _budget_left(scenario, fates))


def _fate(scenario: CallScenario, rules: ReleaseRules, index: int, before: list[Fate]) -> Fate:
    shape, start = scenario.shape, scenario.start
    name, rows = shape.identifiers[index], scenario.features.rows[index]
    offset, length = scenario.features.offsets[index], scenario.features.lengths[index]
    asked, window = scenario.asked, window_end(start, scenario.asked, scenario.shift)
    cached: BoolTerm = scenario.cached[name]
    is_met = is_asked_for(offset, offset + length, start, window)
    is_whole: BoolTerm = scenario.whole_items
    if shape.is_encoder_decoder:
        # The item is encoded before the decoder's first step, and its book knows no hits.
        is_met, cached, is_whole = eq(start, 0), False, False
    ended = or_(*(or_(fate.cut, fate.refused) for fate in before))
    met = and_(asked > 0, is_met, not_(ended))
    repeats = or_(*(f.taken for i, f in enumerate(before) if shape.identifiers[i] == name))
    cut = and_(
        met,
        is_whole,
        is_cut_off_whole(offset, offset + length, start, asked, window, rules.splits_at_start),
        or_(not rules.splits_cached, not_(or_(repeats, cached))),
    )
    reached = and_(met, not_(cut))
    absent = and_(reached, not_(repeats), not_(cached))
    rows_before = [ite(fate.taken, scenario.features.rows[i], 0) for i, fate in enumerate(before)]
    fits = has_room(rows, _budget_left(scenario, before), sum(rows_before), scenario.freeable)
    rows_end = window if rules.encodes_boundary else start + asked
    bounds = slice_bounds(offset, length, start, rows_end)
    low, high = row_range(scenario.features.masks[index].rows_before, *bounds)
    taken = and_(absent, fits, low < high)
    from_store = and_(shape.has_store, scenario.stored[name])
    return Fate(
        chosen=and_(taken, not_(from_store)),
        loaded=and_(taken, from_store),
        duplicate=and_(reached, repeats),
        hit=and_(reached, not_(repeats), cached),
        cut=cut,
        refused=and_(absent, not_(fits)),
    )


def _budget_left(scenario: CallScenario, fates: list[Fate]) -> IntTerm:
    spent = (ite(fate.chosen, scenario.features.rows[i], 0) for i, fate in enumerate(fates))
    return scenario.budget - sum(spent)
