"""Run ready tests as those who paste them would: in their own process, on a release's source."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_PYTEST = """
import gc, os, sys
# The collector would look at all that is imported, again and again.
gc.disable()
import pytest
code = pytest.main(sys.argv[1:])
sys.stdout.flush()
sys.stderr.flush()
# Nor need it be taken down.
os._exit(code)
"""


def run_ready_tests(folder: Path, source_root: Path) -> tuple[dict[str, str], str]:
    """Outcome of each test of a folder by its name, and what was printed, a line per failure."""
    result = subprocess.run(
        [sys.executable, "-c", _PYTEST, "-q", "-rA", "-p", "no:cacheprovider", "--tb=line", "."],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(source_root),
            "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line.split() for line in result.stdout.splitlines()]
    outcomes = {
        words[1].split("::")[-1]: words[0]
        for words in lines
        if len(words) > 1 and words[0] in ("PASSED", "FAILED", "ERROR")
    }
    return outcomes, result.stdout + result.stderr
