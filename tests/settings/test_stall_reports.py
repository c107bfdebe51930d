"""What ``lint-config`` writes of a prompt that stalls: a run of the release's engine.

The reference with the release's faults stands in the place of the release.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from impl.target import LoopTarget
from impl.targets.runs import ReferenceLoop
from impl.vllm.launch.source import Source
from proofs.commands.main import main
from proofs.describe.scenarios import describe_scenario
from proofs.drive.drive import Wanted, shown_on
from proofs.report.pages.reproduce import Links
from proofs.run.targets import VllmName
from proofs.settings.judge import Setup, judge
from proofs.settings.stuck import stops
from proofs.settings.stuck.layouts import Layout, as_scenario
from proofs.settings.stuck.settings import Settings
from proofs.settings.stuck.signs import SIGNS, Sign
from spec.errors import InputError
from spec.rules.releases import rules_of
from tests.support.html_pages import text_of
from tests.support.lint_grid import SWITCHES, reference_cells
from tests.support.reference_as_vllm import replace_all

SETTINGS = (
    *("--release", "0.32.0", "--max-num-batched-tokens", "8", "--largest-item", "4"),
    *("--encoder-cache-size", "4", "--encoder-budget", "8", "--limit-mm-per-prompt", '{"image":2}'),
    *("--requests", "1", "--no-enable-prefix-caching"),
)
EAGLE = ("--speculative-config", '{"method":"eagle","num_speculative_tokens":1}')
FAULTS = ("deferred-free-margin", "shifted-cut")
"""What 0.32.0 does: references stay longer, and a chunk ends before a refused item."""

SETUP = Setup(
    Settings(
        *(8, 8, 4, 4, 4),
        num_drafts=1,
        shift=1,
        num_requests=1,
        items_per_prompt=2,
        prefix_hits=False,
    ),
    rules_of("0.32.0"),
    "0.32.0",
)
"""The same as data."""


def lint(monkeypatch: pytest.MonkeyPatch, faults: tuple[str, ...] | None, *words: object) -> Result:
    """The command; without faults to be given, the engine cannot be run at all."""
    replace_all(monkeypatch.setattr)

    def make(vllm: VllmName) -> LoopTarget:
        if faults is None:
            raise InputError("install transformers first")
        return ReferenceLoop(faults)

    monkeypatch.setattr("proofs.drive.drive.make_target", make)
    monkeypatch.setattr("proofs.drive.jobs.make_target", make)
    vllm = VllmName(Source("vllm 0.32.0", Path(), Path(), "0.32.0", "d"))
    monkeypatch.setattr("proofs.dossiers.stops.named_vllms", lambda *_: (vllm,))
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


WHOLE = ("--disable-chunked-mm-input", "--largest-item", 16)
"""An item that no engine takes: it exceeds the token budget, and must not be split."""


def test_a_prompt_that_cannot_be_run_takes_no_other_with_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Wrong: one illegal prompt, and nothing is told of the ones that stall."""
    folder, junit = tmp_path / "out", tmp_path / "j.xml"
    words = (*WHOLE, "--encoder-cache-size", 16, "--encoder-budget", 16, "--junit", junit)
    done = lint(monkeypatch, (*FAULTS, "whole-item-cut-short"), *words, "--report", folder)
    assert done.exit_code == 1, done.output
    assert "no report on item-never-fits: its prompt cannot be run: " in done.output
    assert list(folder.glob("*/report.html"))
    assert list(ElementTree.parse(junit).iter("failure"))


def test_a_stop_by_another_mechanism_confirms_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Wrong: a theorem about room is confirmed by an engine that stops for any other reason."""
    signs = {name: Sign("no-stall", "for want of anything else") for name in SIGNS}
    monkeypatch.setattr("proofs.dossiers.stops.SIGNS", signs)
    done = lint(monkeypatch, FAULTS, "--report", tmp_path / "out")
    assert done.exit_code == 5, done.output
    assert "does not stop as the theorems say at: neighbours-do-not-fit (no-stall: " in done.output
    assert not list((tmp_path / "out").glob("*/report.html"))


def test_two_stops_on_one_page_name_both_prompts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Wrong: a page says of one run what was seen in another."""
    (found,) = judge(SETUP).stops
    more = replace(found.layout.prompts[0], num_tokens=found.layout.prompts[0].num_tokens + 1)
    twin = replace(found, layout=Layout((more,)))
    monkeypatch.setattr("proofs.settings.judge.stops", lambda *_: (found, twin))
    folder = tmp_path / "out"
    done = lint(monkeypatch, FAULTS, "--report", folder)
    assert done.exit_code == 1, done.output
    (page,) = folder.glob("*/report.html")
    text = text_of(page.read_text())
    for stop, run in ((found, "this run"), (twin, "another run that stops in the same way")):
        prompt = describe_scenario(as_scenario(stop.layout, SETUP.settings))
        assert f"{run} is its smallest prompt, {prompt}" in text


def test_stopping_early_leaves_no_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Wrong: Ctrl-C is not looked at while an engine runs, or ends in a verdict."""
    monkeypatch.setattr("proofs.dossiers.stops.interrupts", lambda: nullcontext(lambda: True))
    done = lint(monkeypatch, FAULTS, "--report", tmp_path / "out")
    assert done.exit_code == 130, done.output
    assert not (tmp_path / "out").exists()


def test_every_stop_has_its_sign() -> None:
    """Wrong: a stuck state that was added ends a report, since nobody said how it shows."""
    folder = Path(stops.__file__).parent
    texts = [path.read_text("utf-8") for path in folder.glob("*.py")]
    names = {name for text in texts for name in re.findall(r'Stop\(\s+"([a-z-]+)"', text)}
    assert names == set(SIGNS)


@pytest.mark.parametrize("names", SWITCHES, ids=lambda names: "+".join(names) or "none")
def test_each_stop_of_an_engine_shows_as_it_is_told(names: tuple[str, ...]) -> None:
    """Wrong: a true theorem is called an error, since its stop is looked for by other signs."""
    target = ReferenceLoop(names)
    for cell in (c for c in reference_cells(5, 12 * len(SWITCHES)) if c.switches == names):
        for stop in cell.judged().stops:
            scenario, sign = as_scenario(stop.layout, cell.settings), SIGNS[stop.name]
            wanted = Wanted(sign.claim, None, (scenario,), signs=sign.mechanism)
            shown = shown_on(target, wanted)
            assert shown.example is not None, (stop.name, shown.seen)
