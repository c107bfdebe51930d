"""Scheduling: what each guard of the scheduler means, in positions of the prompt.

What a guard asks for, cuts or runs is told without the guard's own terms: by the positions that a
window and a feature share, by the longest chunk that ends before a refused feature, by what is
known, drafted and computed. The groups ``chunks`` and ``progress`` show what follows from the
guards; here it is shown that they are the guards they are said to be.
"""

from __future__ import annotations

from proofs.smt.main import main_of_group
from proofs.smt.obligation import Formula
from proofs.smt.theorem import Group, changed, theorem, without
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.guards.scene import FEATURES_NOT_EMPTY
from spec.algebra import and_, eq, iff, implies, ite, min_, not_, or_
from spec.claims.predicates import reservation_kept, threshold_kept
from spec.rules import chunk_ends, encoder_inputs, turn
from spec.rules.geometry import meets
from spec.rules.releases import Shifts
from spec.rules.stopping_passes import (
    Boundaries,
    Item,
    PairState,
    Room,
    end_at_boundary,
    is_refused,
    tokens_before_last_blocks,
)

GROUP = Group("scheduling")

_TOKENS = "tokens-not-negative"
_DECODES = "request-decodes"


@theorem(
    GROUP,
    claim="need-agrees",
    sentence="a dense feature is asked for exactly if it shares a position with the window",
    witness={"offset": 3, "length": 4, "start": 0, "window": 5},
    ablations=(
        changed("window-one-longer", longer=1),
        without("empty-feature", FEATURES_NOT_EMPTY),
        without("empty-window", "window-not-empty"),
    ),
)
def _asked_for_is_meeting(v: Vocabulary, longer: int = 0) -> Formula:
    offset, length, start, window = integers(v, "offset length start window")
    return Formula(
        {FEATURES_NOT_EMPTY: length >= 1, "window-not-empty": start < window},
        iff(
            encoder_inputs.is_asked_for(offset, offset + length, start, window + longer),
            meets(offset, length, start, window),
        ),
        and_(offset >= 0, start >= 0),
    )


@theorem(
    GROUP,
    claim="target-resident",
    sentence="the chunk cut before a refused feature is the longest that ends the cut's shift "
    "before it, and no longer than the chunk that would run",
    witness={"offset": 3, "start": 0, "num_tokens": 5, "cut_shift": 1, "shorter": 2},
    ablations=(changed("cut-one-late", late=1), without("longer-chunk", "no-longer-than-asked")),
)
def _refused_cut_is_longest(v: Vocabulary, late: int = 0) -> Formula:
    offset, start, num_tokens, cut_shift, shorter = integers(
        v, "offset start num_tokens cut_shift shorter"
    )
    cut = chunk_ends.refused_cut(offset, start, num_tokens, cut_shift - late)
    ends_before = start + shorter + cut_shift <= offset
    return Formula(
        {"no-longer-than-asked": and_(shorter >= 0, shorter <= num_tokens)},
        and_(cut <= num_tokens, iff(shorter <= cut, or_(shorter <= 0, ends_before))),
        and_(offset >= 0, start >= 0, cut_shift >= 0),
    )


@theorem(
    GROUP,
    claim="item-whole",
    sentence="releases cut off a whole item exactly if the chunk splits it or, with the item's "
    "start in the window, ends at or before that start, unless the chunk starts on an item that is "
    "spared",
    witness={
        "offset": 3,
        "length": 4,
        "start": 0,
        "num_tokens": 2,
        "window": 4,
        "spares_start": True,
    },
    ablations=(
        changed("window-one-longer", longer=1),
        without("empty-feature", FEATURES_NOT_EMPTY),
        without("negative-chunk", _TOKENS),
        without("window-behind-the-chunk", "window-reaches-the-chunk's-end"),
    ),
)
def _cut_off_whole_is_splitting_ahead(v: Vocabulary, longer: int = 0) -> Formula:
    offset, length, start, num_tokens, window = integers(v, "offset length start num_tokens window")
    end, chunk_end, spares = offset + length, start + num_tokens, v.boolean("spares_start")
    is_cut = chunk_ends.is_cut_off_whole(offset, end, start, num_tokens, window + longer, spares)
    splits = chunk_ends.splits_item(offset, end, start, num_tokens)
    lies_ahead = and_(chunk_end <= offset, offset < window)
    return Formula(
        {
            FEATURES_NOT_EMPTY: length >= 1,
            _TOKENS: num_tokens >= 0,
            "window-reaches-the-chunk's-end": chunk_end <= window,
        },
        iff(is_cut, and_(or_(splits, lies_ahead), not_(and_(spares, eq(offset, start))))),
        and_(offset >= 0, start >= 0),
    )


@theorem(
    GROUP,
    claim="item-whole",
    sentence="a chunk that would split an item runs to the item's end if it starts on the item and "
    "has the tokens, and to the item's start otherwise",
    witness={"offset": 1, "end": 3, "start": 1, "num_tokens": 1, "available_tokens": 2},
    ablations=(
        changed("one-token-more", more=1),
        without("not-split", "splits"),
        without("chunk-beyond-the-budget", "chunk-is-available"),
    ),
)
def _extends_when_on_the_item(v: Vocabulary, more: int = 0) -> Formula:
    offset, end, start, num_tokens, available = integers(
        v, "offset end start num_tokens available_tokens"
    )
    extends = chunk_ends.extends_over_item(offset, end, start, available + more)
    chunk = ite(extends, end - start, chunk_ends.whole_item_cut(offset, start, 0))
    whole = ite(end - start <= available, end - start, 0)
    return Formula(
        {
            "splits": chunk_ends.splits_item(offset, end, start, num_tokens),
            "chunk-is-available": num_tokens <= available,
        },
        and_(
            chunk <= available,
            implies(start < offset, eq(start + chunk, offset)),
            implies(eq(start, offset), eq(chunk, whole)),
        ),
        and_(offset >= 0, start >= 0),
    )


@theorem(
    GROUP,
    claim="no-stall",
    sentence="what a chunk leaves is too short exactly if a further chunk follows and the modules "
    "of a drafter read past the known tokens",
    witness={"start": 0, "num_tokens": 4, "num_known_tokens": 5, "scheduler_lookahead": 2},
    ablations=(changed("one-more", more=1),),
)
def _too_short_reads_past_the_known(v: Vocabulary, more: int = 0) -> Formula:
    start, num_tokens, num_known, shift = integers(
        v, "start num_tokens num_known_tokens scheduler_lookahead"
    )
    chunk_end = start + num_tokens
    return Formula(
        {},
        iff(
            chunk_ends.is_last_chunk_too_short(start, num_tokens, num_known, shift + more),
            and_(chunk_end < num_known, num_known < chunk_end + shift),
        ),
        and_(start >= 0, num_tokens >= 0, num_known >= 0, shift >= 0),
    )


@theorem(
    GROUP,
    claim="reservation-kept",
    sentence="after the reservation the rest of the prefill is nothing or at least the shift, "
    "unless only a chunk without a token would leave so much: then the chunk stays as it was",
    witness={"start": 0, "num_tokens": 4, "num_known_tokens": 5, "scheduler_lookahead": 2},
    ablations=(changed("not-reserved", reserves=False),),
)
def _reservation_leaves_the_shift(v: Vocabulary, reserves: bool = True) -> Formula:
    start, num_tokens, num_known, shift = integers(
        v, "start num_tokens num_known_tokens scheduler_lookahead"
    )
    shorter = chunk_ends.reserving_chunk(start, num_tokens, num_known, shift)
    chunk = chunk_ends.reserved_chunk(num_tokens, shorter) if reserves else num_tokens
    left = num_known - start - chunk
    return Formula(
        {},
        and_(
            chunk <= num_tokens,
            reservation_kept(left, shift, num_known - shift > start),
            or_(left <= 0, left >= shift, eq(chunk, num_tokens)),
        ),
        and_(start >= 0, num_tokens >= 1, num_known >= 0, shift >= 0),
    )


@theorem(
    GROUP,
    claim="threshold-kept",
    sentence="the threshold leaves a chunk no longer than it is, and shortens no other",
    witness={"wanted": 5, "threshold": 3, "others": True},
    ablations=(changed("threshold-exceeded-by-one", more=1),),
)
def _threshold_limits_long_prefills(v: Vocabulary, more: int = 0) -> Formula:
    wanted, threshold = integers(v, "wanted threshold")
    chunk = chunk_ends.limited_by_threshold(wanted, threshold + more)
    return Formula(
        {},
        and_(
            implies(
                threshold > 0, threshold_kept(chunk, wanted, threshold, 0, v.boolean("others"))
            ),
            or_(eq(chunk, wanted), and_(threshold > 0, eq(chunk, threshold), wanted > threshold)),
        ),
        and_(wanted >= 0, threshold >= 0),
    )


@theorem(
    GROUP,
    claim="counts-agree",
    sentence="a request that decodes surely ends exactly if something is in flight and one token "
    "more than it knows is its last",
    witness={
        "num_computed_tokens": 6,
        "num_output_placeholders": 2,
        "num_known_tokens": 5,
        "limit": 6,
    },
    ablations=(changed("one-token-early", early=1), without("prefill", _DECODES)),
)
def _surely_ends_with_one_more(v: Vocabulary, early: int = 0) -> Formula:
    computed, placeholders, num_known, limit = integers(
        v, "num_computed_tokens num_output_placeholders num_known_tokens limit"
    )
    return Formula(
        {_DECODES: eq(computed - placeholders, num_known - 1)},
        iff(
            turn.surely_ends(computed + early, placeholders, limit),
            and_(placeholders >= 1, num_known + 1 >= limit),
        ),
        and_(placeholders >= 0, num_known >= 1, limit >= num_known),
    )


@theorem(
    GROUP,
    claim="counts-agree",
    sentence="a request that decodes wants one token and its drafts, unless a step in flight "
    "surely ends its turn: then none",
    witness={
        "num_computed_tokens": 6,
        "num_output_placeholders": 2,
        "num_known_tokens": 5,
        "num_draft_tokens": 1,
        "limit": 9,
    },
    ablations=(changed("placeholders-ignored", counts=False), without("prefill", _DECODES)),
)
def _decode_wants_token_and_drafts(v: Vocabulary, counts: bool = True) -> Formula:
    computed, placeholders, num_known, drafts, limit = integers(
        v, "num_computed_tokens num_output_placeholders num_known_tokens num_draft_tokens limit"
    )
    wanted = turn.tokens_wanted(computed, num_known, drafts, placeholders if counts else 0, limit)
    ends = and_(placeholders >= 1, num_known + 1 >= limit)
    return Formula(
        {_DECODES: eq(computed - placeholders, num_known - 1)},
        eq(wanted, ite(ends, 0, 1 + drafts)),
        and_(placeholders >= 0, num_known >= 1, drafts >= 0, limit >= num_known),
    )


@theorem(
    GROUP,
    claim="counts-agree",
    sentence="of the sampled tokens as many are appended as the turn may have, and all of them if "
    "it may have all",
    witness={"num_sampled": 3, "num_known_tokens": 5, "limit": 7},
    ablations=(changed("one-token-more", more=1),),
)
def _emits_up_to_the_limit(v: Vocabulary, more: int = 0) -> Formula:
    sampled, num_known, limit = integers(v, "num_sampled num_known_tokens limit")
    emitted = turn.tokens_emitted(sampled, num_known, limit + more)
    return Formula(
        {},
        and_(
            emitted <= sampled,
            num_known + emitted <= limit,
            or_(eq(emitted, sampled), eq(num_known + emitted, limit)),
        ),
        and_(sampled >= 1, num_known >= 1, limit >= num_known),
    )


@theorem(
    GROUP,
    claim="no-stall",
    sentence="of two items the second is refused exactly if it is not held, is asked for and, "
    "beside the first, exceeds the encoder budget or the cache",
    witness={
        "first_offset": 0,
        "first_length": 4,
        "first_rows": 4,
        "second_offset": 4,
        "second_length": 4,
        "second_rows": 4,
        "cache_size": 4,
        "encoder_budget": 8,
        "window_shift": 1,
        "num_computed_tokens": 3,
        "holds_first": True,
        "holds_second": False,
        "num_asked_tokens": 5,
    },
    ablations=(changed("cache-one-larger", larger=1),),
)
def _refused_is_exceeding_the_room(v: Vocabulary, larger: int = 0) -> Formula:
    first = Item(*integers(v, "first_offset first_length first_rows"))
    second = Item(*integers(v, "second_offset second_length second_rows"))
    cache, budget, shift = integers(v, "cache_size encoder_budget window_shift")
    progress, asked = integers(v, "num_computed_tokens num_asked_tokens")
    state = PairState(progress, v.boolean("holds_first"), v.boolean("holds_second"))
    window = encoder_inputs.window_end(progress, asked, shift)
    room, shifts = Room(cache + larger, budget), Shifts(shift, 0, 0)
    encodes_first = and_(
        not_(state.holds_first),
        encoder_inputs.is_asked_for(first.offset, first.end, progress, window),
    )
    keeps_first = or_(state.holds_first, encodes_first)
    exceeds = or_(
        second.rows + ite(encodes_first, first.rows, 0) > budget,
        second.rows + ite(keeps_first, first.rows, 0) > cache,
    )
    return Formula(
        {},
        iff(
            is_refused(first, second, state, asked, room, shifts),
            and_(
                not_(state.holds_second),
                encoder_inputs.is_asked_for(second.offset, second.end, progress, window),
                exceeds,
            ),
        ),
        and_(first.offset >= 0, first.length >= 1, second.length >= 1, progress >= 0, asked >= 0),
    )


@theorem(
    GROUP,
    claim="no-stall",
    sentence="a chunk before the last blocks ends at a block boundary or runs nothing, one that "
    "reaches them ends where they begin, and one that starts in them runs whole",
    witness={"start": 0, "num_tokens": 5, "last_boundary": 4, "last_cacheable": 8},
    ablations=(changed("one-token-more", more=1), without("negative-chunk", _TOKENS)),
)
def _last_blocks_are_spared(v: Vocabulary, more: int = 0) -> Formula:
    start, num_tokens, boundary, last = integers(v, "start num_tokens last_boundary last_cacheable")
    end = start + num_tokens
    stop = start + tokens_before_last_blocks(start, num_tokens + more, boundary, last)
    floored = ite(boundary > start, boundary, start)
    return Formula(
        {_TOKENS: num_tokens >= 0},
        and_(
            implies(end < last, eq(stop, floored)),
            implies(and_(start < last, last <= end), eq(stop, last)),
            implies(start >= last, eq(stop, end)),
        ),
        and_(start >= 0, boundary >= 0, boundary <= end, last >= 0),
    )


@theorem(
    GROUP,
    claim="no-stall",
    sentence="an aligned chunk ends at the least of its bounds: the last block boundary before its "
    "end unless it ends the prompt, the next boundary if it starts inside a block, and the last "
    "boundary whose state is cached",
    witness={
        "start": 0,
        "end": 6,
        "num_prompt_tokens": 9,
        "before_start": 0,
        "after_start": 4,
        "before_end": 4,
        "last_cacheable": 4,
        "runs_within_block": False,
    },
    ablations=(changed("prompt-one-shorter", shorter=1),),
)
def _boundary_is_the_least_bound(v: Vocabulary, shorter: int = 0) -> Formula:
    start, end, prompt = integers(v, "start end num_prompt_tokens")
    boundaries = Boundaries(*integers(v, "before_start after_start before_end last_cacheable"))
    runs_within = v.boolean("runs_within_block")
    stop = end_at_boundary(start, end, prompt - shorter, boundaries, runs_within)
    before = boundaries.before_end
    floored = ite(before > start, before, ite(runs_within, end, start))
    aligned = ite(end >= prompt, end, floored)
    next_boundary = ite(start > boundaries.before_start, boundaries.after_start, aligned)
    cacheable = ite(start < boundaries.last_cacheable, boundaries.last_cacheable, aligned)
    return Formula(
        {},
        eq(stop, min_(aligned, min_(next_boundary, cacheable))),
        and_(start >= 0, end >= start, before <= end, boundaries.before_start <= start),
    )


if __name__ == "__main__":
    main_of_group(GROUP.name, GROUP.obligations)
