"""Known faults as the relation sees them: a guard replaced, or another effect of a transition.

Each bears the name of its switch in :mod:`impl.faults.switches`, or of a fault that releases have,
so that search and proof name the same claims.
"""

from __future__ import annotations

from dataclasses import replace

from proofs.smt.vocabulary import Vocabulary
from proofs.theorems.runs.kept import Fault
from spec.algebra import BoolTerm, IntTerm, and_, eq, implies, ite, not_
from spec.relation.change import changed
from spec.relation.guards import CORRECT, ends_before_refused, keeps_item_whole
from spec.relation.state import Move, Scope, State
from spec.rules import free


def _unshifted(start: IntTerm, num_tokens: IntTerm, scheduler_lookahead: IntTerm) -> IntTerm:
    """The scheduler looks to the end of the chunk."""
    return start + num_tokens


def _one_late(start: IntTerm, num_tokens: IntTerm, offset: IntTerm) -> BoolTerm:
    """The chunk may run the first token of what was refused."""
    return ends_before_refused(start, num_tokens, offset + 1)


def _announces_all(evicted: BoolTerm, entry: BoolTerm) -> BoolTerm:
    """What was evicted is announced, back in the book or not."""
    return evicted


def _announces_nothing(evicted: BoolTerm, entry: BoolTerm) -> BoolTerm:
    """Nothing is announced."""
    return False


def _evicts_anything(referenced: BoolTerm) -> BoolTerm:
    """Held or not."""
    return True


def _drops_what_others_use(v: Vocabulary, scope: Scope, before: State, move: Move) -> Move:
    """The worker drops what a request that finished had used."""
    used = v.boolean("used_by_who_finished")
    return Move(move.guards, changed(move.after, resident=and_(move.after.resident, not_(used))))


def _stays_in_the_book(v: Vocabulary, scope: Scope, before: State, move: Move) -> Move:
    """The victim's inputs are withdrawn from the pass, and its entries stay."""
    after = changed(move.after, entry=before.entry, free=before.free)
    return Move(move.guards, after)


def _duplicate_without_reference(v: Vocabulary, scope: Scope, before: State, move: Move) -> Move:
    """A further occurrence counts as asked for, and nothing is kept for it."""
    return Move(move.guards, changed(move.after, held=before.held))


def _sent_without_raw_data(v: Vocabulary, scope: Scope, before: State, move: Move) -> Move:
    """Who starts again is sent without its raw data."""
    return Move({**move.guards, "starts-with-raw-data": True}, move.after)


def _worker_keeps(v: Vocabulary, scope: Scope, before: State, move: Move) -> Move:
    """The reset does not reach the worker, nor its tensors the next encodings."""
    return Move(move.guards, changed(move.after, resident=before.resident))


def _whole_unless_at_start(
    offset: IntTerm, length: IntTerm, start: IntTerm, num_tokens: IntTerm, is_whole: BoolTerm
) -> BoolTerm:
    """A chunk that starts on an item may end inside it."""
    return implies(
        not_(eq(offset, start)), keeps_item_whole(offset, length, start, num_tokens, is_whole)
    )


def _never_whole(
    offset: IntTerm, length: IntTerm, start: IntTerm, num_tokens: IntTerm, is_whole: BoolTerm
) -> BoolTerm:
    """An item whose output is in the book may be split anywhere."""
    return True


def _credits_own_rows(v: Vocabulary, scope: Scope, before: State, move: Move) -> Move:
    """The last holder credits the rows of its own mask, under a hash that has others."""
    credited = move.after.freeable - before.freeable
    freeable = before.freeable + ite(credited >= 1, v.integer("rows_by_own_mask"), 0)
    return Move(move.guards, changed(move.after, freeable=freeable))


def _keeps_rejected(v: Vocabulary, scope: Scope, before: State, move: Move) -> Move:
    """Rejected drafts stay counted."""
    after = changed(move.after, computed=before.computed, placeholders=before.placeholders)
    return Move(move.guards, after)


def _counts_samples_only(v: Vocabulary, scope: Scope, before: State, move: Move) -> Move:
    """Placeholders do not count drafts."""
    placeholders = before.placeholders + move.after.sampling - before.sampling
    return Move(move.guards, changed(move.after, placeholders=placeholders))


def _keeps_references(v: Vocabulary, scope: Scope, before: State, move: Move) -> Move:
    """Who stops lets nothing go."""
    after = changed(move.after, held=before.held, others=before.others)
    return Move(move.guards, after)


def _runs_on(v: Vocabulary, scope: Scope, before: State, move: Move) -> Move:
    """Who lost its references goes on in the pass."""
    return Move(move.guards, changed(move.after, running=before.running))


def _does_not_give_back(v: Vocabulary, scope: Scope, before: State, move: Move) -> Move:
    """A request that was tried and did not start is left as it is."""
    return Move({**move.guards, "ends-what-was-applied": before.in_pass}, move.after)


def _drops_with_the_first(v: Vocabulary, scope: Scope, before: State, move: Move) -> Move:
    """The only reference goes with another occurrence."""
    return Move(move.guards, changed(move.after, held=False))


def _one_early(
    offset: IntTerm, length: IntTerm, num_computed_tokens: IntTerm, placeholders: IntTerm
) -> BoolTerm:
    """A reference may go one token before the feature's end."""
    return free.may_drop_reference(offset, length, num_computed_tokens, placeholders, -1)


def _ignores_placeholders(
    offset: IntTerm, length: IntTerm, num_computed_tokens: IntTerm, placeholders: IntTerm
) -> BoolTerm:
    """What was counted in advance passes for confirmed."""
    return free.may_drop_reference(offset, length, num_computed_tokens, 0, 0)


def _at_once(in_pass: BoolTerm) -> BoolTerm:
    """References may go as soon as a pass is scheduled."""
    return True


NO_SHIFT = Fault("no-scheduler-shift", replace(CORRECT, window_end=_unshifted))
NEVER_ENCODED = Fault("boundary-never-encoded", replace(CORRECT, window_end=_unshifted))
LEADING_GAP = Fault("masked-leading-gap", replace(CORRECT, window_end=_unshifted))
CUT_LATE = Fault("cut-ends-late", replace(CORRECT, ends_before_refused=_one_late))
SPLIT_AT_START = Fault(
    "item-split-at-start", replace(CORRECT, keeps_item_whole=_whole_unless_at_start)
)
WARM_SPLIT = Fault("warm-item-split", replace(CORRECT, keeps_item_whole=_never_whole))
STALE_NOTICE = Fault("stale-eviction-notice", replace(CORRECT, is_announced=_announces_all))
NOTICES_LOST = Fault("notices-lost", replace(CORRECT, is_announced=_announces_nothing))
EVICTS_HELD = Fault("evicts-the-referenced", replace(CORRECT, may_evict=_evicts_anything))
FINISHED_DROPS = Fault("finished-drops-tensors", twist=_drops_what_others_use)
VICTIM_STAYS = Fault("victim-of-the-same-pass-not-encoded", twist=_stays_in_the_book)
DUPLICATE_UNHELD = Fault("same-step-duplicate-unreferenced", twist=_duplicate_without_reference)
WORKER_KEEPS = Fault("v2-reset-keeps-tensors", twist=_worker_keeps)
NO_PAYLOAD = Fault("resumed-without-payload", twist=_sent_without_raw_data)
OWN_SIZE = Fault("own-size-free", twist=_credits_own_rows)
FREED_EARLY = Fault("freed-one-token-early", replace(CORRECT, goes_by_progress=_one_early))
IGNORES_PLACEHOLDERS = Fault(
    "free-ignores-placeholders", replace(CORRECT, goes_by_progress=_ignores_placeholders)
)
BEFORE_EXECUTION = Fault("free-before-execution", replace(CORRECT, may_let_go=_at_once))
FIRST_OCCURRENCE = Fault("dropped-at-first-occurrence", twist=_drops_with_the_first)
REJECTED_KEPT = Fault("rejected-drafts-kept", twist=_keeps_rejected)
DRAFTS_NOT_COUNTED = Fault("drafts-not-counted", twist=_counts_samples_only)
ENDED_KEEPS = Fault("ended-keeps-references", twist=_keeps_references)
FINISH_KEEPS = Fault("finish-keeps-references", twist=_keeps_references)
WAITING_KEEPS = Fault("waiting-keeps-references", twist=_does_not_give_back)
RUNS_ON = Fault("preempted-runs-on", twist=_runs_on)
