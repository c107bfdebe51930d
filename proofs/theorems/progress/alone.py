"""What stops an engine by itself: an item that never fits, a padded decode that is cut."""

from __future__ import annotations

from functools import partial

from proofs.smt.obligation import Ablation, Formula, Obligation
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.progress.scene import ASKS_FOR_TOKENS, GROUP
from spec.algebra import and_, eq, iff, not_
from spec.rules.scheduling import has_room, limited_by_threshold, refused_cut
from spec.rules.stop_conditions import item_never_fits, padded_decode_breaks
from spec.rules.stopping_passes import Room


def _item_never_fits(v: Vocabulary) -> Formula:
    """Nothing else is held or chosen, and the request stands before the item."""
    rows, cache, budget, offset, asked = integers(
        v, "rows cache_size encoder_budget offset num_asked_tokens"
    )
    refused = not_(has_room(rows, budget, 0, cache))
    tokens = refused_cut(offset, offset, asked, 0)
    return Formula(
        {ASKS_FOR_TOKENS: asked >= 1},
        and_(iff(item_never_fits(rows, Room(cache, budget)), refused), eq(tokens, 0)),
        and_(rows >= 1, offset >= 0),
    )


def _padded(v: Vocabulary, num_sampled: int = 1) -> Formula:
    drafts, threshold = integers(v, "num_speculative_tokens long_prefill_token_threshold")
    padded = num_sampled + drafts
    return Formula(
        {},
        iff(
            padded_decode_breaks(drafts, threshold),
            not_(eq(limited_by_threshold(padded, threshold), padded)),
        ),
        and_(drafts >= 0, threshold >= 0),
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="item-never-fits",
        sentence="an item is refused by an empty book exactly if it has more rows than the cache "
        "or the encoder budget, and then a request that stands before it runs nothing",
        build=_item_never_fits,
        witness={
            "rows": 4,
            "cache_size": 3,
            "encoder_budget": 4,
            "offset": 0,
            "num_asked_tokens": 4,
        },
        ablations=(Ablation("negative-chunk", drops=(ASKS_FOR_TOKENS,)),),
    ),
    Obligation(
        claim="no-error",
        group=GROUP,
        short_name="padded-decode-breaks",
        sentence="a decode padded with drafts is cut, which an assertion forbids, exactly if the "
        "threshold on long prefills is at most the number of drafts",
        build=_padded,
        witness={"num_speculative_tokens": 1, "long_prefill_token_threshold": 1},
        ablations=(Ablation("drafts-alone", build=partial(_padded, num_sampled=0)),),
    ),
)
