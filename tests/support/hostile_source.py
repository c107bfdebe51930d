"""Sources that do not want to be proved: each runs code of its own where *free* is made."""

from __future__ import annotations

from pathlib import Path

from tests.support.fake_release import write_release

FAULT = (" - request.num_output_placeholders", "")
"""Of *free*, so that the true verdict is ``REFUTED``."""


def write_hostile(folder: Path, code: str) -> Path:
    """A release that runs some code where *free* is made, below which it is wrong.

    The code has no builtins that reach the machine, and gets them all the same.
    """
    reach = "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close']"
    builtins = f"{reach}[0].__init__.__globals__['__builtins__']"
    run = f"(lambda b: b['exec']({code!r}, {{'__builtins__': b}}))({builtins})"
    head = "def _free_encoder_inputs(self, request"
    package = write_release(folder, scheduler=FAULT)
    path = package / "v1" / "core" / "sched" / "scheduler.py"
    text = path.read_text(encoding="utf-8")
    assert head in text
    path.write_text(text.replace(head, f"{head}, hostile={run}"), encoding="utf-8")
    return package
