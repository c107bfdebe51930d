"""What ``lint-config`` writes of a prompt that stalls: a run of the release's engine.

The reference with the release's faults stands in the place of the release.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from impl.loop_target import LoopTarget
from impl.reference.loop_target import ReferenceLoop
from impl.vllm.source import Source
from proofs.cli import main
from proofs.loop.jobs import VllmName
from proofs.report.links import Links
from spec.errors import InputError
from tests.html_pages import text_of
from tests.reference_as_vllm import replace_all

SETTINGS = (
    *("--release", "0.32.0", "--max-num-batched-tokens", "8", "--largest-item", "4"),
    *("--encoder-cache-size", "4", "--encoder-budget", "8", "--limit-mm-per-prompt", '{"image":2}'),
    *("--requests", "1", "--no-enable-prefix-caching"),
)
EAGLE = ("--speculative-config", '{"method":"eagle","num_speculative_tokens":1}')
FAULTS = ("deferred-free-margin", "shifted-cut")
"""What 0.32.0 does: references stay longer, and a chunk ends before a refused item."""


def lint(monkeypatch: pytest.MonkeyPatch, faults: tuple[str, ...] | None, *words: object) -> Result:
    """The command; without faults to be given, the engine cannot be run at all."""
    replace_all(monkeypatch.setattr)

    def make(vllm: VllmName) -> LoopTarget:
        if faults is None:
            raise InputError("install transformers first")
        return ReferenceLoop(faults)

    monkeypatch.setattr("proofs.driving.make_target", make)
    monkeypatch.setattr("proofs.loop.jobs.make_target", make)
    vllm = VllmName(Source("vllm 0.32.0", Path(), Path(), "0.32.0", "d"))
    monkeypatch.setattr("proofs.stall_dossiers.named_vllms", lambda *_: (vllm,))
    given = ("lint-config", *SETTINGS, *EAGLE, *words)
    return CliRunner().invoke(main, [str(word) for word in given])


def test_a_prompt_that_stalls_is_run_and_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Wrong: a theorem that a user has to take on trust."""
    folder, junit = tmp_path / "out", tmp_path / "j.xml"
    done = lint(monkeypatch, FAULTS, "--report", folder, "--junit", junit)
    assert done.exit_code == 1, done.output
    (page,) = folder.glob("*/report.html")
    text = text_of(page.read_text())
    assert "By theorem these settings can stall (" in text
    assert "residency replay scenario.json --target vllm --release 0.32.0" in text
    assert {p.name for p in page.parent.iterdir()} >= set(Links().all) - {Links().test}
    assert "no-stall" in (folder / "index.html").read_text()
    (failed,) = ElementTree.parse(junit).iter("failure")
    assert failed.get("type") == "REFUTED"


def test_an_engine_that_does_not_stall_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Wrong: a verdict that the engine itself contradicts, with the exit code of a good one."""
    done = lint(monkeypatch, (), "--report", tmp_path / "out")
    assert done.exit_code == 5, done.output
    assert "vllm 0.32.0 does not stop at: " in done.output


def test_a_release_that_cannot_run_is_wrong_input(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Wrong: a report that was asked for and is missing, with a good exit code."""
    done = lint(monkeypatch, None, "--report", tmp_path / "out")
    assert done.exit_code == 2, done.output
    last = done.output.strip().splitlines()[-1]
    assert "vllm 0.32.0 cannot be run: install transformers first" in last
    assert lint(monkeypatch, None).exit_code == 1  # The verdict needs no engine.


def test_rules_of_no_release_have_no_engine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Wrong: a page about an engine that does not follow the rules that were judged."""
    done = lint(monkeypatch, FAULTS, "--margin", 1, "--report", tmp_path / "out")
    assert done.exit_code == 2, done.output
    assert "these rules are of none" in done.output
    assert not (tmp_path / "out").exists()


def test_a_verdict_is_told_to_other_tools_without_an_engine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Wrong: a pull request that changes settings turns red, and does not say why."""
    summary, sarif = tmp_path / "s.md", tmp_path / "s.sarif"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    done = lint(monkeypatch, None, "--sarif", sarif)
    assert done.exit_code == 1, done.output
    assert "::error " in done.output
    assert "neighbours-do-not-fit" in summary.read_text()
    assert json.loads(sarif.read_text())["version"] == "2.1.0"
    safe = tmp_path / "safe.xml"
    words = ("--encoder-cache-size", 64, "--junit", safe)
    assert lint(monkeypatch, None, *words).exit_code == 0
    assert not list(ElementTree.parse(safe).iter("failure"))
