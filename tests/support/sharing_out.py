"""Which tests go to the same process, and which begin, where several processes run them.

A file stays whole, for what its tests prepare once. So do the files that ask releases questions:
each release is imported once. What takes longest begins, so that no process is left alone with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[2]

ASK_RELEASES = "releases"
"""The files that ask releases questions, together."""

_ASKING = (
    "tests/record/test_late_close.py",
    "tests/record/test_prefix_hits.py",
    "tests/relation/test_relation_releases.py",
    "tests/search/test_memory.py",
    "tests/settings/test_lint_grid.py",
    "tests/settings/test_lint_overlapping.py",
    "tests/vllm/test_protocol_faults.py",
    "tests/vllm/test_readme_commands.py",
    "tests/vllm/test_refactorings.py",
    "tests/vllm/test_vllm_found.py",
    "tests/vllm/test_vllm_loop.py",
    "tests/vllm/test_vllm_loop_commands.py",
    "tests/vllm/test_vllm_target.py",
)
_LONGEST = (
    ASK_RELEASES,
    "tests/explore/test_explore.py",
    "tests/theorems/test_proofs.py",
    "tests/search/test_check.py",
    "tests/source/test_source_releases.py",
    "tests/house/test_wheel.py",
    "tests/vllm/test_vllm_adapter.py",
    "tests/source/test_source_runs.py",
    "tests/search/test_loop_search.py",
    "tests/source/test_source_scheduling.py",
    "tests/source/test_source_mutants.py",
)


class WholeFiles(LoadScopeScheduling):
    """Gives each process whole files."""

    def _split_scope(self, nodeid: str) -> str:
        return together(nodeid)


def together(nodeid: str) -> str:
    """The name of the tests that stay with this one."""
    file = nodeid.split("::", 1)[0]
    return ASK_RELEASES if file in _ASKING else file


def longest_first(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests in the order in which they are given out; otherwise as they were."""
    places = {name: place for place, name in enumerate(_LONGEST)}
    return sorted(items, key=lambda item: places.get(together(item.nodeid), len(places)))


def missing_files() -> list[str]:
    """Files that are named here, and are not there."""
    named = {*_ASKING, *_LONGEST} - {ASK_RELEASES}
    return sorted(name for name in named if not (ROOT / name).is_file())
