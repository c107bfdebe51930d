"""Passes that overlap: what ``lint-config`` says of engines that schedule asynchronously."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner, Result

from impl.targets.runs import ReferenceLoop
from impl.vllm.launch.source import cache_folder, unpacked
from proofs.commands.main import main
from proofs.settings.judge import Setup, judge
from proofs.settings.stuck.layouts import Layout, Place, Prompt, as_scenario
from proofs.settings.stuck.passes import stand_still
from proofs.settings.stuck.settings import Settings
from spec.rules.releases import NEWEST, rules_of
from spec.verdict import Verdict
from tests.recorders.record_lint_grid import disagrees, observed_apart
from tests.support.lint_grid import SWITCHES, Cell, first_that_stops, reference_cells, stops

_SEED = 11
_CELLS = reference_cells(_SEED, 12 * len(SWITCHES))


def run(*arguments: str) -> Result:
    line = ("--max-num-batched-tokens", "8", "--largest-item", "4", *arguments)
    return CliRunner().invoke(main, ["lint-config", *line])


@pytest.mark.parametrize("names", SWITCHES, ids=lambda names: "+".join(names) or "none")
def test_verdict_is_what_the_reference_does_with_passes_in_flight(names: tuple[str, ...]) -> None:
    """Wrong: an asynchronous engine is called safe that stops, or unsafe by prompts that go on."""
    target = ReferenceLoop(names)
    for cell in (cell for cell in _CELLS if cell.switches == names):
        overlapping = replace(cell, settings=replace(cell.settings, async_depth=1))
        judgement = overlapping.judged()
        for stop in judgement.stops:
            scenario = as_scenario(stop.layout, overlapping.settings)
            assert scenario.config.async_depth == 1
            assert stops(target, scenario), (stop.name, overlapping.settings)
        if judgement.verdict is Verdict.PROVED:
            assert cell.judged().verdict is Verdict.PROVED
            assert first_that_stops(target, overlapping, _SEED, 20) == (None, 20)


@pytest.mark.vllm
def test_the_newest_release_does_so_too() -> None:
    """Wrong: a proof on asynchronous engines that the real one does not keep."""
    if unpacked(cache_folder(), NEWEST) is None:
        pytest.skip(f"vllm {NEWEST} was not fetched; run `residency vllm fetch {NEWEST}`")
    seen = set()
    for entry in observed_apart(NEWEST, 3, 10, async_depth=1):
        settings = Settings(**entry["settings"])
        assert settings.async_depth == 1
        verdict = judge(Setup(settings, rules_of(NEWEST), NEWEST)).verdict
        assert not disagrees(verdict, entry), entry
        seen.add(verdict)
    assert seen >= {Verdict.PROVED, Verdict.REFUTED}


MODULES = ("-sc", '{"method": "mtp", "num_speculative_tokens": 2}', "--modules", "2")


def test_asynchronous_scheduling_is_the_default_and_can_be_switched_off() -> None:
    """Wrong: "cannot stall" is said of an engine that the theorems are not about."""
    line = (*MODULES, "--requests", "1", "--block-alignment", "4")
    for flags in ((), ("--async-scheduling",)):
        result = run(*line, *flags)
        assert result.exit_code == 3, result.output
        assert result.output.startswith("not settled: synchronous-scheduling")
        assert "scheduling: asynchronous" in result.output
    result = run(*line, "--no-async-scheduling")
    assert result.exit_code == 0, result.output
    assert "scheduling: synchronous\n" in result.output
    assert "synchronous-scheduling" in result.output.splitlines()[-1]


def test_a_proof_that_rests_on_states_alone_holds_of_passes_that_overlap() -> None:
    """Wrong: the default engine is never settled, or takes synchronous scheduling for granted."""
    result = run("-sc", '{"method": "eagle", "num_speculative_tokens": 3}')
    assert result.exit_code == 0, result.output
    assert "scheduling: asynchronous" in result.output
    assert "synchronous-scheduling" not in result.output


@pytest.mark.parametrize(
    ("release", "drafter", "scheduling"),
    [
        ("0.24.0", {"method": "eagle"}, "asynchronous"),
        ("0.24.0", {"method": "deepseek_mtp"}, "asynchronous"),
        ("0.24.0", {"method": "ngram"}, "synchronous"),
        ("0.24.0", {"method": "draft_model"}, "synchronous"),
        ("0.24.0", {"method": "eagle", "disable_padded_drafter_batch": True}, "synchronous"),
        # Only runner V1 cannot; which one runs is not in the arguments.
        ("0.33.0", {"method": "ngram"}, "asynchronous"),
    ],
)
def test_scheduling_is_derived_as_the_release_does(
    release: str, drafter: dict[str, object], scheduling: str
) -> None:
    """Wrong: the verdict is about an engine that the line does not start."""
    given = json.dumps({**drafter, "num_speculative_tokens": 1})
    assert f"scheduling: {scheduling}" in run("--release", release, "-sc", given).output


def test_several_stages_of_a_pipeline_are_not_settled() -> None:
    """Wrong: decodes that wait for the stages are taken for decodes that run."""
    assert run("--pipeline-parallel-size", "2").exit_code == 3
    assert run("--pipeline-parallel-size", "1").exit_code == 0


def test_a_prompt_that_goes_on_where_passes_overlap_is_not_named() -> None:
    """Wrong: a false alarm for engines that schedule ahead."""
    items = (Place(0, 2, 2), Place(2, 2, 2))
    cell = Cell(Settings(8, 3, 3, 2, 2, num_drafts=1, shift=1, async_depth=1), rules_of("0.32.0"))
    assert stand_still(Layout((Prompt(4, items),)), cell.settings, cell.rules)
    apart = (Place(0, 2, 2), Place(4, 2, 2))
    assert not stand_still(Layout((Prompt(6, apart),)), cell.settings, cell.rules)


@pytest.mark.parametrize("flag", ["--encoder-cache-size", "--encoder-budget"])
def test_sizes_that_vllm_cannot_have_are_named(flag: str) -> None:
    """Wrong: people look for a setting that there is none of, to get or to avoid a verdict."""
    assert "not settable in vLLM" not in run(flag, "8").output
    assert "not settable in vLLM" not in run().output
    for rows in ("4", "9"):
        result = run(flag, rows)
        assert f"of {rows} rows; it is 8," in result.output
