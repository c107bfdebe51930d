"""Write the recorded scenarios of the loop and their index; never by hand.

    python -m tests.recorders.record_scenarios [--check]

``--check`` compares with the files instead of writing them, and exits with 1 where they differ.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from impl.faults.switches import LOOP_FAULTS
from proofs.drive.recorded import DEFAULT_FOLDER, INDEX, SCHEMA_VERSION, Index, WithoutScenario
from proofs.drive.recorded import RecordedFault as Entry
from spec.functions.case_files import write_atomically
from spec.record.document import dumps_scenario
from tests.support.vllm_loop_faults import RECORDED

WITHOUT_SCENARIO = {
    "no-scheduler-shift": "last seen in 0.11.2; the loop covers 0.17 and later",
    "waiting-keeps-references": "last seen in 0.11.2; the loop covers 0.17 and later",
    "rollback-ignores-shift": "last seen in 0.14.1; the loop covers 0.17 and later",
    "interior-miss-swallowed": "was never released",
    "free-ignores-placeholders": "no run reaches it while features lie in the prompt; the "
    "function itself is checked by `residency check --level function`",
    "negative-mask-index": "it is about empty ranges, for which no gather asks; the "
    "function itself is checked by `residency check --level function`",
}
"""Public faults that no run of a release covered shows, and why."""


def files() -> dict[str, str]:
    """The text of each file, by name."""
    texts: dict[str, str] = {}
    entries: list[Entry] = []
    names: dict[str, int] = {}
    for fault in RECORDED:
        names[fault.name] = names.get(fault.name, 0) + 1
        number = names[fault.name]
        file = f"{fault.name}{f'-{number}' if number > 1 else ''}.json"
        texts[file] = dumps_scenario(fault.scenario)
        entries.append(
            Entry(
                fault.name,
                file,
                (fault.claim,),
                fault.last_affected,
                fault.first_good,
                fault.first_affected,
            )
        )
    for switch in LOOP_FAULTS:
        if switch.scenario is None:
            continue
        file = f"switch-{switch.name}.json"
        texts[file] = dumps_scenario(switch.scenario)
        entries.append(Entry(f"switch {switch.name}", file, switch.breaks_in_loop))
    without = tuple(WithoutScenario(name, why) for name, why in WITHOUT_SCENARIO.items())
    index = asdict(Index(SCHEMA_VERSION, tuple(entries), without))
    texts[INDEX] = json.dumps(index, indent=1) + "\n"
    return texts


def main() -> int:
    """Write or compare; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    texts = files()
    present = {path.name: path for path in DEFAULT_FOLDER.glob("*.json")}
    wrong = [
        name
        for name, text in texts.items()
        if name not in present or present[name].read_text(encoding="utf-8") != text
    ]
    wrong += [name for name in present if name not in texts]
    if check:
        for name in wrong:
            print(f"{DEFAULT_FOLDER / name}: not as recorded")
        return int(bool(wrong))
    for name in wrong:
        if name in texts:
            write_atomically(DEFAULT_FOLDER / name, texts[name])
        else:
            Path(present[name]).unlink()
    print(f"wrote or removed {len(wrong)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
