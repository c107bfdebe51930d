"""A release's rules as its source shows them, where they can be proved; the rest is told.

A release that nobody looked at yet is judged by its own code instead of by its number.
"""

from __future__ import annotations

from dataclasses import replace

from proofs.source.code.encoder_passes import has_reservation
from proofs.source.code.release import ReleaseSource
from proofs.source.functions.free import free_rule_piece
from proofs.source.passes.call_rule import KNOWN_RULES
from proofs.source.passes.which_rule import scheduled_inputs_piece
from spec.rules.releases import NEWEST, ReadRules, Tokens, rules_of
from spec.verdict import Verdict


def rules_of_source(release: ReleaseSource) -> ReadRules:
    """The rules on references, cuts, whole items and the reservation.

    They are proved equal to ``_free_encoder_inputs`` and ``_try_schedule_encoder_inputs``. Rules on
    the threshold on long prefills, on alignment to blocks and on padded decodes are not read.
    """
    missing: list[str] = []
    largest_shift = None if has_reservation(release) else 1
    rules = replace(
        rules_of(NEWEST),
        largest_shift=largest_shift,
        reservation="off" if largest_shift else "insisting",
    )
    call = scheduled_inputs_piece(release)
    rule = next((k for k in KNOWN_RULES if call.detail == f"a chunk {k.words}"), None)
    if call.verdict is Verdict.PROVED and rule is not None:
        rules = replace(
            rules,
            cut_shift=rule.rules.cut_shift,
            whole_cut_shift=rule.rules.whole_cut_shift,
            encodes_boundary=rule.rules.encodes_boundary,
            splits_at_start=rule.rules.splits_at_start,
            splits_cached=rule.rules.splits_cached,
        )
    else:
        missing.append(f"how encoder inputs are scheduled: {call.detail}")
    free = free_rule_piece(release)
    margin = _margin(free.detail, largest_shift)
    # What is not the rule proper is refuted as a rule, though an instance was proved equal to it.
    if free.verdict in (Verdict.PROVED, Verdict.REFUTED) and margin is not None:
        rules = replace(rules, margin=margin)
    else:
        missing.append(f"when a reference is let go: {free.detail}")
    return ReadRules(rules, tuple(missing))


def _margin(detail: str, largest_shift: int | None) -> Tokens | None:
    """The margin that the rule of *free* was proved with; ``None`` where it is none of those."""
    # Where an engine stands still, nothing is counted in advance.
    words = detail.rpartition("; ")[2].removesuffix(", but placeholders ignored")
    margins: dict[str, Tokens] = {
        "the rule with margin 0": 0,
        "the rule with margin = scheduler's shift": "shift",
    }
    if largest_shift == 1:
        # A margin of 1 with a drafter is the shift where no drafter has a larger one.
        margins["the rule with margin 1 with a drafter, else 0"] = "shift"
    return margins.get(words)
