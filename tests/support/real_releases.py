"""Releases of vLLM as sources under proof, for tests."""

from __future__ import annotations

from functools import cache

import pytest

from impl.vllm.launch.source import cache_folder, unpacked
from proofs.source.code.recorders import OVERRIDES
from proofs.source.code.release import ReleaseSource
from proofs.source.code.run_setup import RunCode


@cache
def real_release(name: str) -> ReleaseSource:
    """A release that was fetched; the test is skipped where it was not."""
    source = unpacked(cache_folder(), name)
    if source is None:
        pytest.skip(f"vLLM {name} IS NOT HERE, so its runs were not proved; run `make vllm`")
    release = ReleaseSource(source.package, OVERRIDES)
    # Parsed once: mutants change one module and share the others.
    RunCode(release)
    return release
