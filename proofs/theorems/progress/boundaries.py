"""A block boundary in what the reservation keeps together of a prompt: when it stops a request."""

from __future__ import annotations

from proofs.smt.obligation import Ablation, Formula, Obligation
from proofs.smt.vocabulary import Vocabulary, integers
from proofs.theorems.progress.scene import AT_THE_STOP, BEFORE_THE_STOP, GROUP, REACHED, STOPS
from spec.algebra import BoolTerm, IntTerm, and_, eq, implies, ite, max_, min_, not_, or_
from spec.rules.stop_conditions import boundary_splits_the_end
from spec.rules.stop_settings import boundary_can_stop_text
from spec.rules.stopping_passes import Boundaries, end_at_boundary, tokens_after_reservation

_BOUNDARIES = "boundaries-a-block-apart"
_SHIFT_WITHIN = "shift-within-a-block"
_DOES_NOT_END = "does-not-end-the-prompt"
_LIMIT = "chunk-limit"
_CUT = "cut-ahead"
_MODULES = "several-modules"


class _Near:
    """A chunk that is aligned, cut before a refused item, and shortened by the reservation.

    The cut is where the chunk may go at most; without a refused item it lies at the prompt's end.
    """

    def __init__(self, v: Vocabulary) -> None:
        self.progress, self.prompt, self.limit, self.cut = integers(
            v, "num_computed_tokens num_prompt_tokens chunk_limit cut"
        )
        self.block, self.shift = integers(v, "block_size window_shift")
        self.before_start, self.before_end, self.before_prompt = integers(
            v, "boundary_before_start boundary_before_end boundary_before_prompt"
        )
        self.end = self.progress + min_(self.prompt - self.progress, self.limit)
        last = self.before_prompt
        ends_at_boundary = eq(self.prompt, last + self.block)
        self.cacheable = ite(ends_at_boundary, last, max_(last - self.block, 0))
        boundaries = Boundaries(
            self.before_start, self.before_start + self.block, self.before_end, self.cacheable
        )
        self.aligned = end_at_boundary(
            self.progress, self.end, self.prompt, boundaries, self.block > self.limit
        )
        tokens = min_(self.aligned, self.cut) - self.progress
        self.tokens = tokens_after_reservation(self.progress, tokens, self.prompt, self.shift)
        self.after = self.progress + self.tokens
        self.reserved = self.prompt - self.shift
        self.splits = boundary_splits_the_end(self.prompt, self.before_prompt, self.shift)

    @property
    def boundaries(self) -> BoolTerm:
        """Each is the last at or before its place, or before the prompt's end; 0 is one."""
        last, block = self.before_prompt, self.block
        marks = (0, self.before_start, self.before_end, last - block, last, last + block)

        def apart(x: IntTerm, y: IntTerm) -> BoolTerm:
            return or_(eq(x, y), x + self.block <= y, y + self.block <= x)

        places = (
            (self.before_start, self.progress),
            (self.before_end, self.end),
            (self.before_prompt, self.prompt - 1),
        )
        return and_(
            self.block >= 1,
            *(apart(x, y) for n, x in enumerate(marks) for y in marks[:n]),
            *(and_(x >= 0, x <= y, y < x + self.block) for x, y in places),
        )

    @property
    def is_at_boundary(self) -> BoolTerm:
        """Whether progress is at a block boundary."""
        return eq(self.progress, self.before_start)

    @property
    def stops_ahead(self) -> BoolTerm:
        """Whether the chunk cannot run to the prompt's end."""
        return or_(
            self.limit < self.prompt - self.progress,
            not_(self.is_at_boundary),
            self.progress < self.cacheable,
            self.cut < self.prompt,
        )

    @property
    def realistic(self) -> BoolTerm:
        """Counts as an engine has them."""
        return and_(self.progress >= 0, self.limit >= 1, self.shift >= 2, self.cut <= self.prompt)


def _not_empty(v: Vocabulary) -> Formula:
    """Before any item is looked at, and before the reservation."""
    near = _Near(v)
    return Formula(
        {
            "prompt-not-over": near.progress < near.prompt,
            _LIMIT: near.limit >= 1,
            _BOUNDARIES: near.boundaries,
        },
        and_(near.aligned > near.progress, near.aligned <= near.end),
        near.realistic,
    )


def _stays(v: Vocabulary) -> Formula:
    near = _Near(v)
    return Formula(
        {
            AT_THE_STOP: near.reserved <= near.progress,
            STOPS: near.progress < near.before_prompt,
            _BOUNDARIES: near.boundaries,
            _DOES_NOT_END: near.stops_ahead,
        },
        eq(near.tokens, 0),
        near.realistic,
    )


def _gets_there(v: Vocabulary) -> Formula:
    """Each pass before that; the next one does not end the prompt either."""
    near = _Near(v)

    def stops_later(position: IntTerm) -> BoolTerm:
        return or_(
            near.limit < near.prompt - near.cacheable,
            and_(near.cacheable < near.cut, near.cut < near.prompt),
            position > near.cacheable,
            near.prompt - near.cacheable < near.shift,
        )

    return Formula(
        {
            STOPS: near.splits,
            BEFORE_THE_STOP: near.progress < near.reserved,
            _BOUNDARIES: near.boundaries,
            _DOES_NOT_END: stops_later(near.progress),
            _LIMIT: near.limit >= 1,
            _CUT: near.cut > near.progress,
        },
        and_(near.after > near.progress, near.after <= near.reserved, stops_later(near.after)),
        near.realistic,
    )


def _goes_on(v: Vocabulary) -> Formula:
    """Text, or items that all fit: a chunk is cut only where that leaves the last one whole."""
    near = _Near(v)

    def is_safe(position: IntTerm) -> BoolTerm:
        return or_(not_(near.splits), position <= near.cacheable, position >= near.prompt)

    last = min_(near.reserved, near.cacheable)
    return Formula(
        {
            REACHED: is_safe(near.progress),
            "prompt-not-over": near.progress < near.prompt,
            _BOUNDARIES: near.boundaries,
            _SHIFT_WITHIN: near.shift <= near.block,
            _MODULES: near.shift >= 2,
            _LIMIT: near.limit >= near.block + near.shift - 1,
            "not-cut-in-the-last-chunk": or_(
                near.cut >= near.prompt,
                and_(not_(near.splits), near.cut <= near.reserved),
                near.cut <= last,
            ),
            _CUT: near.cut > near.progress,
        },
        and_(near.tokens >= 1, is_safe(near.after)),
        and_(near.realistic, near.after <= near.prompt),
    )


def _is_exact(v: Vocabulary) -> Formula:
    """From settings to a prompt: one block and so much more that a chunk does not hold it."""
    block, limit, shift = integers(v, "block_size chunk_limit window_shift")
    prompt, before = integers(v, "num_prompt_tokens boundary_before_prompt")
    can_stop = boundary_can_stop_text(block, limit, shift)
    # Two whole blocks, or a block and what a chunk does not hold besides.
    is_wide = shift > block
    found = ite(is_wide, 2 * block, max_(limit, block) + 1)
    cacheable = ite(is_wide, block, 0)
    return Formula(
        {_MODULES: shift >= 2, "block-not-empty": block >= 1},
        and_(
            implies(
                can_stop,
                and_(
                    boundary_splits_the_end(found, block, shift),
                    block < found,
                    found <= 2 * block,
                    or_(limit < found - cacheable, found - cacheable < shift),
                ),
            ),
            implies(
                and_(
                    boundary_splits_the_end(prompt, before, shift),
                    prompt - before + block > limit,
                ),
                can_stop,
            ),
        ),
        and_(block >= 1, limit >= 1, before >= 0),
    )


_TEXT = {
    "num_computed_tokens": 0,
    "num_prompt_tokens": 9,
    "chunk_limit": 8,
    "cut": 9,
    "block_size": 8,
    "window_shift": 2,
    "boundary_before_start": 0,
    "boundary_before_end": 8,
    "boundary_before_prompt": 8,
}
"""Text of 9 in blocks of 8, two modules, and a token budget of 8."""

OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="boundary-chunk-not-empty",
        sentence="a chunk that stops at block boundaries, before it is cut, has a token, whether "
        "it holds a block or not",
        build=_not_empty,
        witness=_TEXT,
        ablations=(
            Ablation("prompt-over", drops=("prompt-not-over",)),
            Ablation("any-place", drops=(_BOUNDARIES,)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="boundary-stays",
        sentence="a block boundary in the prompt's last shift, and progress in front of it: a pass "
        "that does not run to the prompt's end runs nothing",
        build=_stays,
        witness={**_TEXT, "num_computed_tokens": 7},
        ablations=(
            Ablation("condition-fails", drops=(STOPS,)),
            Ablation("elsewhere", drops=(AT_THE_STOP,)),
            Ablation("runs-to-the-end", drops=(_DOES_NOT_END,)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="boundary-gets-there",
        sentence="with the same condition, each pass before that raises progress, to the prompt's "
        "last shift at most",
        build=_gets_there,
        witness=_TEXT,
        ablations=(
            Ablation("condition-fails", drops=(STOPS,)),
            Ablation("runs-to-the-end", drops=(_DOES_NOT_END,)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="boundary-goes-on",
        sentence="where a chunk holds a block and one less than the shift, and is not cut behind "
        "the last boundary but one, every pass of the prompt runs a token",
        build=_goes_on,
        witness={**_TEXT, "chunk_limit": 9, "boundary_before_end": 8},
        ablations=(
            Ablation("shift-above-a-block", drops=(_SHIFT_WITHIN,)),
            Ablation("shorter-chunks", drops=(_LIMIT,)),
            Ablation("cut-in-the-last-chunk", drops=("not-cut-in-the-last-chunk",)),
        ),
    ),
    Obligation(
        claim="no-stall",
        group=GROUP,
        short_name="boundary-is-exact",
        sentence="some text stops at a block boundary exactly if the shift exceeds a block, or a "
        "chunk holds less than a block and one less than the shift",
        build=_is_exact,
        witness={
            "block_size": 8,
            "chunk_limit": 8,
            "window_shift": 2,
            "num_prompt_tokens": 9,
            "boundary_before_prompt": 8,
        },
        ablations=(Ablation("one-module", drops=(_MODULES,)),),
    ),
)
