"""Record the run that the README draws: the boundary miss of 0.23.0; never by hand.

    python -m tests.recorders.record_picture [--check]

It runs the release's own scheduler and gathers. ``--check`` compares with the record instead of
writing it, and exits with 1 where they differ.
"""

from __future__ import annotations

import sys

from proofs.drive.jobs import make_target
from proofs.recorded import PICTURES
from proofs.run.record import record
from proofs.run.targets import named_vllms
from spec.monitor.monitor import LoopMonitor
from spec.record.document import dumps_trace
from tests.recorders.recording import write_or_compare
from tests.support.vllm_loop_faults import RECORDED

RECORD = PICTURES / "boundary-miss-0.23.0.json"
RELEASE = "0.23.0"
CLAIM = "boundary-miss-tolerated"


def text() -> str:
    """What the record should be: the run, with the one violation that is told."""
    scenario = next(fault.scenario for fault in RECORDED if fault.name == "no-boundary-tolerance")
    target = make_target(named_vllms([RELEASE], None, None)[0])
    monitor = LoopMonitor(scenario, "V2")
    recording = record(target, scenario, "V2", tensors=None, monitor=monitor)
    findings = [finding for finding in recording.findings if finding.claim == CLAIM]
    return dumps_trace(recording.trace, findings[:1])


if __name__ == "__main__":
    sys.exit(write_or_compare(RECORD, text, "tests.recorders.record_picture", __doc__))
