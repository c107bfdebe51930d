"""For each transition a state, and what it was told, as a run takes it.

In the short form of :meth:`proofs.theorems.runs.variables.World.seen`. Every invariant holds in
each of the states, and a test shows that runs take each transition.
"""

from __future__ import annotations

from spec.relation.cross_attention import ItemScope
from spec.relation.state import Scope

_OF_FEATURES = {
    "begin-pass": "cache_size=1 rows=1 length=1 free=1 freeable=1",
    "attempt": "cache_size=1 rows=1 offset=1 length=1 position=1 referenced_rows=1 in_pass",
    "hit": "cache_size=1 rows=1 length=1 trying entry others=1 in_pass chosen",
    "hit-other": "cache_size=1 rows=1 length=1 entry others=1 in_pass chosen is_new",
    "hit-elsewhere": (
        "cache_size=2 rows=1 length=1 is_whole free=1 freeable=2 idle_rows=1 in_pass their_rows=1"
    ),
    "miss": "cache_size=1 rows=1 length=1 referenced_rows=1 in_pass",
    "refuse": (
        "cache_size=1 rows=1 length=1 referenced_rows=1 in_pass chosen_rows=0 asked_rows=1 budget=7"
    ),
    "evict": (
        "cache_size=1 rows=1 length=1 computed=1 payload entry freeable=1 in_pass resident "
        "fresh wanted=1"
    ),
    "evict-elsewhere": (
        "cache_size=1 rows=1 length=1 freeable=1 idle_rows=1 in_pass wanted=1 their_rows=1"
    ),
    "promise": "cache_size=1 rows=1 length=1 free=1 freeable=1 in_pass chosen_rows=0",
    "promise-elsewhere": (
        "cache_size=1 rows=1 length=1 free=1 freeable=1 in_pass chosen_rows=0 their_rows=1"
    ),
    "forgo": (
        "cache_size=1 rows=1 offset=1 length=1 position=1 computed=1 payload free=1 freeable=1 "
        "in_pass promised=1 promised_here forgone_rows=1 here"
    ),
    "enter": (
        "cache_size=1 rows=1 length=1 trying free=1 freeable=1 in_pass promised=1 promised_here"
    ),
    "enter-other": (
        "cache_size=1 rows=1 length=1 free=1 freeable=1 in_pass promised=1 promised_here"
    ),
    "enter-elsewhere": (
        "cache_size=1 rows=1 length=1 free=1 freeable=1 in_pass promised=1 their_rows=1"
    ),
    "begin": (
        "cache_size=1 rows=1 offset=1 length=1 position=1 trying referenced_rows=1 in_pass "
        "progress=0"
    ),
    "advance": (
        "cache_size=1 rows=1 length=1 running started entry held in_pass chosen asked "
        "num_tokens=1 num_drafts=0 samples no-is_stopped stopped_at=0"
    ),
    "apply": (
        "cache_size=1 rows=1 length=1 scheduler_lookahead=1 gather_lookahead=1 running "
        "computed=1 passes=1 taken started entry held in_pass chosen asked scheduled=1 received "
        "no-forgotten no-is_announced is_encoded no-is_overtaken"
    ),
    "end-pass": (
        "cache_size=1 rows=1 offset=1 length=1 position=1 running computed=1 passes=1 payload "
        "referenced_rows=1 in_pass scheduled=1"
    ),
    "confirm": (
        "cache_size=1 rows=1 length=1 scheduler_lookahead=1 gather_lookahead=1 running "
        "computed=5 drafts=3 passes=1 sampling=1 passed payload free=1 freeable=1 num_drafts=3 "
        "num_rejected=3 samples"
    ),
    "let-go": (
        "cache_size=1 rows=1 length=1 is_async running computed=2 placeholders=1 passes=1 "
        "sampling=1 taken payload entry held resident fresh"
    ),
    "keep": (
        "cache_size=2 rows=2 offset=1 length=2 position=2 is_async running computed=1 payload "
        "free=1 freeable=1 referenced_rows=1"
    ),
    "others-let-go": (
        "cache_size=1 rows=1 length=1 trying entry held others=1 in_pass chosen asked count=1"
    ),
    "elsewhere-lets-go": (
        "cache_size=1 rows=1 length=1 referenced_rows=1 staying_rows=1 leaving_rows=0"
    ),
    "emit": (
        "cache_size=1 rows=1 length=1 is_async running computed=3 placeholders=2 passes=1 "
        "sampling=1 settling=1 taken passed payload entry freeable=1 resident fresh"
    ),
    "stop": (
        "cache_size=1 rows=1 length=1 trying entry held others=1 in_pass chosen asked own_others=0"
    ),
    "rewind": (
        "cache_size=13 rows=1 offset=2 length=3 position=2 scheduler_lookahead=1 "
        "gather_lookahead=1 is_async running computed=4 passes=2 taken payload entry held "
        "free=8 freeable=8 referenced_rows=4 resident fresh own_others=0 left=0"
    ),
    "reset": (
        "cache_size=2 rows=2 length=2 running computed=1 taken payload entry held resident fresh"
    ),
}

_OF_ITEMS = {
    "begin-pass": "cache_size=2 rows=1 free=2",
    "promise": "cache_size=2 rows=1 free=2 in_pass here their_rows=1",
    "refuse": "cache_size=1 rows=1 others=1 in_pass chosen_others=1 asked_rows=1 budget=4",
    "take": "cache_size=2 rows=1 free=2 in_pass promised=1 promised_here",
    "take-other": "cache_size=2 rows=1 free=2 in_pass promised=1 their_rows=1",
    "begin": "cache_size=2 rows=1 held free=1 in_pass chosen",
    "advance": "cache_size=2 rows=1 running held free=1 in_pass chosen num_tokens=1",
    "apply": (
        "cache_size=2 rows=1 running computed=1 held free=1 in_pass chosen scheduled=1 "
        "resident_others=1 announced_others=1 no-is_announced is_encoded"
    ),
    "end-pass": (
        "cache_size=2 rows=1 running computed=1 held free=1 in_pass applied scheduled=1 resident"
    ),
    "let-go": "cache_size=2 rows=1 running computed=1 held free=1 resident",
    "others-let-go": (
        "cache_size=2 rows=1 others=1 free=1 resident_others=1 their_rows=1 their_chosen=0"
    ),
    "stop": "cache_size=2 rows=1 running computed=1 held free=1 resident",
    "reset": "cache_size=2 rows=1 running computed=1 held free=1 resident",
}

WITNESSES: dict[type, dict[str, str]] = {Scope: _OF_FEATURES, ItemScope: _OF_ITEMS}
"""By the relation's constants, and by transition."""
