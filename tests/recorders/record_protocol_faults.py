"""Record which faults in the protocol code of a release are found, and at which draw; nightly work.

    PYTHONHASHSEED=0 python -m tests.recorders.record_protocol_faults [--check]

``--check`` compares with the record instead of writing it, and exits with 1 where they differ.
Seed, draws and faults of each kind stand in the record; it takes some three minutes of one core.
A release's scheduler walks over sets of names, so that the seed of hashes is fixed as well.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from dataclasses import asdict
from typing import Any

import torch

from impl.vllm.launch.source import cache_folder, unpacked
from impl.vllm.runs.target import VllmLoop
from proofs.recorded import FOLDER
from spec.errors import InputError
from tests.recorders.recording import write_or_compare
from tests.support.protocol_fault_runs import MAX_RUN, NUM_CASES, NUM_DRAWS, SEED, Experiment
from tests.support.protocol_faults import RELEASE, all_faults, sample

RECORD = FOLDER / "protocol_faults.json"
PER_KIND = 10
"""Faults of each kind."""

SAME: dict[str, str] = {
    "_get_encoder_input_updates:2797: continue -> dropped": (
        "where nothing is pending and nothing encoded, both loops below it do nothing"
    ),
    "_gather_mm_embeddings:3028: continue -> break": (
        "with a look-ahead of 1 no other item follows in the window after one at its last position"
    ),
    "_update_after_schedule:1871: self._inflight_prefills.discard(request) -> dropped": (
        "only the room kept for loads beside the step reads it, which no scenario has"
    ),
    "schedule:1592: num_computed_tokens + num_new_tokens < request.num_tokens -> "
    "num_computed_tokens + num_new_tokens <= request.num_tokens": (
        "only the room kept for loads beside the step reads it, which no scenario has"
    ),
    "schedule:1566: req_to_new_blocks[request_id] = self.kv_cache_manager.get_blocks(request_id) "
    "-> after `num_scheduled_tokens[request_id] = num_new_tokens`": (
        "neither of the two statements reads what the other writes"
    ),
    "_try_schedule_encoder_inputs:2051: external_load_encoder_input = [] -> after "
    "`duplicate_encoder_inputs = []`": "neither of the two statements reads what the other writes",
}
"""Faults that do the same as the original, or that no run can tell from it, and why."""


def recorded() -> dict[str, Any]:
    """The record."""
    data: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return data


def text() -> str:
    """What the record should be: one line a fault.

    Raises:
        InputError: the release is not here.
    """
    source = unpacked(cache_folder(), RELEASE)
    if source is None:
        raise InputError(f"vllm {RELEASE} was not fetched; run `make vllm`")
    # A fork has only the thread that forks: no other one may be at work.
    torch.set_num_threads(1)
    faults = all_faults(source.package)
    experiment = Experiment(VllmLoop(source), range(NUM_DRAWS))
    experiment.learn_functions()
    print(f"runs that depend on earlier ones: {experiment.unsteady}", file=sys.stderr, flush=True)
    possible = Counter(fault.kind for fault in faults)
    lines = []
    for fault in sample(faults, PER_KIND, SEED):
        began = time.monotonic()
        entry = {"kind": fault.kind, "fault": fault.key, **asdict(experiment.ask(fault))}
        seconds = time.monotonic() - began
        print(f"{seconds:.1f} s", json.dumps(entry), file=sys.stderr, flush=True)
        lines.append("  " + json.dumps(entry))
    head = {
        "schema": 1,
        "release": RELEASE,
        "seed": SEED,
        "draws": NUM_DRAWS,
        "draws_run_at_most": MAX_RUN,
        "cases": NUM_CASES,
        "possible": dict(possible),
    }
    start = "".join(f" {json.dumps(k)}: {json.dumps(v)},\n" for k, v in head.items())
    whole = ",\n".join(lines)
    return f'{{\n{start} "faults": [\n{whole}\n ]\n}}\n'


if __name__ == "__main__":
    sys.exit(write_or_compare(RECORD, text, "tests.recorders.record_protocol_faults", __doc__))
