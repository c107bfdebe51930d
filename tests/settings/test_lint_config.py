"""The command ``residency lint-config``: its verdicts, exit codes, messages and files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from impl.targets.runs import ReferenceLoop
from proofs.commands.lint_config import lint_config
from proofs.settings.flags.arguments import setup_of
from proofs.settings.flags.facts import number
from proofs.settings.flags.known import KNOWN
from proofs.settings.judge import Setup, changes, judge
from proofs.settings.stuck.layouts import as_scenario
from proofs.settings.stuck.safe import theorems
from proofs.settings.stuck.settings import Settings
from proofs.theorems.groups import all_obligations
from spec.errors import InputError
from spec.record.document import loads
from spec.rules.releases import NEWEST, RELEASES, ReleaseRules, rules_of
from spec.verdict import Verdict
from tests.support.lint_grid import SWITCHES, reference_cells, stops
from tests.support.results_files import read_results

EAGLE = '{"method": "eagle", "num_speculative_tokens": 1}'
MTP = '{"method": "deepseek_mtp", "num_speculative_tokens": 3}'

NGRAM = '{"method": "ngram", "num_speculative_tokens": 4}'
GUESS = '{"method": "guess", "num_speculative_tokens": 1}'
OLD = ("--release", "0.32.0", "-sc", EAGLE, "--largest-item", "2")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(lint_config, list(arguments))


def small(*arguments: str) -> Result:
    """With a token budget of 8 and items of up to 5 tokens, where nothing else is given."""
    return run("--max-num-batched-tokens", "8", "--largest-item", "5", *arguments)


# Verdicts


def test_the_newest_release_cannot_stall_with_one_module() -> None:
    """Wrong: a false alarm for the settings that most people have."""
    result = small("-sc", EAGLE)
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"cannot stall: no prompt stops vLLM {NEWEST}")


def test_older_releases_can_stall_and_say_how_to_stop_it() -> None:
    """Wrong: two images that do not fit go unseen (46315, 47738)."""
    result = small("--release", "0.32.0", "-sc", EAGLE)
    assert result.exit_code == 1
    assert "smallest prompt: A[0,4) B[4,9) of 9; B=8, C=8" in result.output
    assert "progress.neighbours-stay" in result.output
    assert "change: --release 0.33.0 instead of 0.32.0" in result.output
    assert "--max-num-batched-tokens 14 instead of 8" in result.output


@pytest.mark.parametrize(
    ("arguments", "name", "prompt"),
    [
        (
            ("--disable-chunked-mm-input", "-sc", EAGLE, "--largest-item", "8"),
            "whole-item-exceeds-chunk",
            "A[1,9) of 9",
        ),
        (
            ("--disable-chunked-mm-input", "--long-prefill-token-threshold", "2"),
            "whole-item-exceeds-chunk",
            "R0: A[0,3) of 3; R1: B[0,3) of 3",
        ),
        (
            ("-sc", MTP, "--modules", "2", "--largest-item", "8", "--encoder-budget", "16"),
            "reservation-after-cut",
            "A[0,8) B[8,9) of 9",
        ),
        (
            ("-sc", MTP, "--modules", "2", "--long-prefill-token-threshold", "2"),
            "chunks-below-shift",
            "R0: text of 3; R1: text of 3",
        ),
        (
            ("-sc", EAGLE, "--long-prefill-token-threshold", "1"),
            "padded-decode-above-threshold",
            "R0: text of 1, generates 3; R1: text of 1, generates 3, arrives at 1",
        ),
        (
            (
                *("--release", "0.30.0", "-sc", EAGLE, "--long-prefill-token-threshold", "1"),
                *("--requests", "1"),
            ),
            "padded-decode-above-threshold",
            "text of 2, generates 3, finds 1 computed",
        ),
        (
            ("--release", "0.27.1", "--mamba-cache-mode", "align", "--block-size", "4"),
            "neighbours-do-not-fit",
            "A[0,5) B[5,9) of 9",
        ),
        (
            ("--encoder-cache-size", "4", "--largest-item", "5"),
            "item-never-fits",
            "A[0,5) of 5",
        ),
        (
            ("-sc", MTP, "--modules", "3", "--block-alignment", "8", "--requests", "1"),
            "reservation-against-alignment",
            "text of 9",
        ),
        (
            (
                *("-sc", MTP, "--modules", "3", "--block-alignment", "6", "--requests", "1"),
                *("--encoder-cache-size", "9"),
            ),
            "reservation-against-alignment",
            "A[3,8) B[8,12) C[12,13) of 13",
        ),
        (
            ("-sc", MTP, "--modules", "3", "--block-alignment", "4", "--requests", "2"),
            "reservation-against-alignment",
            "R0: text of 4; R1: text of 5",
        ),
        (
            ("--release", "0.25.0", "--mamba-cache-mode", "align", "--block-size", "4"),
            "neighbours-do-not-fit",
            "A[0,5) B[5,9) of 9",
        ),
        (
            (*OLD, "--encoder-cache-size", "5", "--long-prefill-token-threshold", "4"),
            "requests-wait-for-each-other",
            "R0: A[3,5) B[5,7) of 7; R1: C[3,5) D[5,7) of 7",
        ),
    ],
)
def test_each_stuck_state_is_named_with_its_smallest_prompt(arguments, name, prompt) -> None:
    """Wrong: a stuck state of a release is not seen, or its prompt is not the known one."""
    result = small(*arguments)
    assert result.exit_code == 1, result.output
    assert f"can stall: {name}" in result.output
    assert prompt in result.output


@pytest.mark.parametrize(
    ("arguments", "assumption"),
    [
        (OLD, "requests-do-not-wait"),
        ((*OLD, "--max-num-seqs", "1"), None),
        (("--encoder-decoder",), "decoder-only"),
        (("--no-enable-chunked-prefill",), "chunked-prefill"),
        (
            (
                "--long-prefill-token-threshold",
                "6",
                "--long-prefill-token-threshold-adaptive",
            ),
            "threshold-fixed",
        ),
        (("--kv-transfer-config", "{}1"), "no-outside-store"),
        (
            ("-sc", '{"method": "draft_model", "num_speculative_tokens": 2}'),
            "drafter-without-slots",
        ),
        (
            (
                *("-sc", MTP, "--modules", "3", "--block-alignment", "4", "--largest-item", "2"),
                *("--max-num-batched-tokens", "19", "--max-num-seqs", "2"),
            ),
            "no-others-in-a-pass",
        ),
        (
            ("-sc", MTP, "--modules", "3", "--block-alignment", "2", "--largest-item", "2"),
            "blocks-not-below-the-shift",
        ),
        (
            (
                *("-sc", NGRAM, "--long-prefill-token-threshold", "4", "--requests", "2"),
                *("--no-enable-prefix-caching",),
            ),
            "drafts-always-proposed",
        ),
        (("--scheduler-cls", "my.Scheduler"), "passes-as-modelled"),
        (
            (*OLD, "--max-num-seqs", "2", "--scheduling-policy", "priority"),
            "first-come-first-served",
        ),
        (
            (
                *("-sc", MTP, "--modules", "3", "--margin", "1", "--requests", "1"),
                *("--largest-item", "1", "--encoder-cache-size", "2"),
            ),
            "cut-shifted-as-far-as-reserved",
        ),
    ],
)
def test_what_the_theorems_do_not_settle_is_unknown(arguments, assumption) -> None:
    """Wrong: settings outside of the theorems are called safe."""
    result = small(*arguments)
    assert result.exit_code == (0 if assumption is None else 3), result.output
    if assumption is not None:
        assert f"not settled: {assumption}" in result.output


def test_a_padded_decode_is_not_asserted_where_chunks_are_aligned() -> None:
    """Wrong: a false alarm; those releases drop the padding where the alignment comes between."""
    line = ("-sc", EAGLE, "--long-prefill-token-threshold", "1", "--requests", "2")
    assert small(*line).exit_code == 1
    assert small(*line, "--block-alignment", "1").exit_code == 0


# Input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "missing --max-num-batched-tokens"),
        (("--max-num-batched-tokens", "8"), "missing --largest-item"),
        (("--max-num-batched-tokens", "8x", "--largest-item", "2"), "no count"),
        (("--max-num-batched-tokens", "0", "--largest-item", "0"), "at least 1"),
        (
            ("--max-num-batched-tokens", "8", "--largest-item", "2", "--largest-rows", "3"),
            "at most one row a token",
        ),
        (
            ("--max-num-batched-tokens", "8", "--largest-item", "2", "-sc", "{"),
            "speculative_config: not JSON",
        ),
        (("--max-num-batched-tokens", "8", "--largest-item", "2", "-sc", "{}"), "give method"),
        (
            ("--max-num-batched-tokens", "8", "--largest-item", "2", "-sc", MTP),
            "missing --modules",
        ),
        (
            ("--max-num-batched-tokens", "8", "--largest-item", "2", "-sc", GUESS),
            "unknown method",
        ),
        (
            ("--max-num-batched-tokens", "8", "--largest-item", "2", "--mamba-cache-mode", "align"),
            "missing --block-size",
        ),
        (
            ("--max-num-batched-tokens", "8", "--largest-item", "2", "--mamba-cache-mode", "Align"),
            "'Align' is none of all, align, none",
        ),
        (
            (
                *("--max-num-batched-tokens", "8", "--largest-item", "2"),
                *("--mamba-cache-mode", "align", "--block-size", "0"),
            ),
            "block_size is 0; it must be at least 1",
        ),
        (
            (
                *("--max-num-batched-tokens", "8", "--largest-item", "2"),
                *("--limit-mm-per-prompt", '{"image": -1}'),
            ),
            "give a count for image, 0 or more",
        ),
        (
            (
                *("--max-num-batched-tokens", "8", "--largest-item", "2", "--release", "0.25.0"),
                *("--block-alignment", "9"),
            ),
            "a token budget of 8 is less than a block of 9 tokens",
        ),
        (
            (
                *("--max-num-batched-tokens", "8", "--largest-item", "2", "--release", "0.23.0"),
                *("--block-alignment", "4", "--long-prefill-token-threshold", "3"),
            ),
            "a threshold on long prefills of 3 is less than a block of 4 tokens",
        ),
        (
            ("--max-num-batched-tokens", "1", "--largest-item", "1", "-sc", EAGLE),
            "vLLM refuses to start",
        ),
        (
            ("--max-num-batched-tokens", "8", "--largest-item", "2", "--release", "0.26.0"),
            "rules of vLLM 0.26.0 are not known",
        ),
        (
            ("--max-num-batched-tokens", "8", "--largest-item", "2", "--release", "new"),
            "is no release",
        ),
    ],
)
def test_missing_or_wrong_facts_are_told(arguments, message) -> None:
    """Wrong: a verdict from a fact that was made up, or a message that helps nobody."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert message in result.output


@pytest.mark.parametrize(
    ("text", "value"), [("8192", 8192), ("8k", 8000), ("8K", 8192), ("1.5k", 1500), (7, 7)]
)
def test_counts_are_read_as_vllm_reads_them(text, value) -> None:
    """Wrong: 8k and 8K are the same number."""
    assert number(text, "x") == value


def test_a_file_of_arguments_is_read_and_the_command_line_wins(tmp_path: Path) -> None:
    """Wrong: people lint other settings than those they start with."""
    file = tmp_path / "engine.yaml"
    file.write_text(
        "max-num-batched-tokens: 8\nlargest-item: 5\nmodel: some/model\nrelease: 0.32.0\n"
        "speculative-config: {method: eagle, num_speculative_tokens: 1}\n",
        encoding="utf-8",
    )
    assert run("--config", str(file)).exit_code == 1
    assert run("--config", str(file), "--release", "0.33.0").exit_code == 0
    file.write_text("max-num-batched-tokenz: 8\n", encoding="utf-8")
    result = run("--config", str(file))
    assert result.exit_code == 2
    assert "unknown arguments max_num_batched_tokenz" in result.output


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("scheduling-policy: Priority", "'Priority' is none of fcfs, priority"),
        ("enable-chunked-prefill: 'false'", "'false' is neither true nor false"),
        ("encoder-decoder: 'no'", "'no' is neither true nor false"),
        ("long-prefill-token-threshold-adaptive: 1", "1 is neither true nor false"),
        ("a: b: c", "neither YAML nor JSON"),
    ],
)
def test_a_wrong_value_in_a_file_is_told_in_one_line(
    line: str, message: str, tmp_path: Path
) -> None:
    """Wrong: a slip in a file passes for the default, and the verdict is about another engine."""
    file = tmp_path / "engine.yaml"
    file.write_text(f"max-num-batched-tokens: 8\nlargest-item: 2\n{line}\n", encoding="utf-8")
    result = run("--config", str(file))
    assert result.exit_code == 2, result.output
    (output,) = result.output.splitlines()
    assert message in output


def test_sizes_follow_the_token_budget_as_in_vllm() -> None:
    """Wrong: a cache larger or smaller than the engine's."""
    setup = setup_of({"max_num_batched_tokens": 4, "largest_item": 6}, {})
    assert (setup.settings.cache_size, setup.settings.encoder_budget) == (6, 6)
    setup = setup_of({"max_num_batched_tokens": 8, "largest_item": 6}, {})
    assert (setup.settings.cache_size, setup.settings.encoder_budget) == (8, 8)
    given = {"max_num_batched_tokens": 8, "largest_item": 6, "max_num_partial_prefills": 2}
    partial = setup_of({**given, "max_model_len": 100, "release": "0.23.0"}, {})
    assert partial.settings.threshold == 4
    assert "max_num_partial_prefills" in KNOWN


# Output


def test_the_smallest_prompt_is_a_scenario_and_the_verdict_is_data(tmp_path: Path) -> None:
    """Wrong: what is named cannot be replayed, or programs cannot read the verdict."""
    scenario, verdict = tmp_path / "stall.json", tmp_path / "verdict.json"
    result = small("--release", "0.32.0", "-sc", EAGLE, "-o", str(scenario), "--json", str(verdict))
    assert result.exit_code == 1
    loaded = loads(scenario.read_text(encoding="utf-8")).scenario
    loaded.validate()
    assert stops(ReferenceLoop(["shifted-cut"]), loaded)
    assert not stops(ReferenceLoop(), loaded)
    data = read_results(verdict, "lint-config")
    (checked,), data = data["targets"], data["details"]
    assert [outcome["verdict"] for outcome in checked["outcomes"]] == ["REFUTED"]
    assert loads(json.dumps(checked["violations"][0]["document"])).scenario == loaded
    assert data["verdict"] == "REFUTED"
    assert data["stops"][0]["requests"][0]["num_tokens"] == 9
    assert data["changes"][0]["settings"][0]["setting"] == "release"


def test_theorems_that_are_named_exist() -> None:
    """Wrong: a verdict rests on theorems that nobody proves."""
    stated = {obligation.name for obligation in all_obligations()}
    named = set()
    for cell in reference_cells(1, 20 * len(SWITCHES)):
        judgement = cell.judged()
        named |= {theorem for stop in judgement.stops for theorem in stop.theorems}
        if judgement.verdict is Verdict.PROVED:
            named |= set(theorems(cell.settings, cell.rules))
    assert named <= stated
    # Both kinds: why a prompt stops, and why none does.
    assert {"progress.neighbours-stay", "progress.neighbours-go-on"} <= named


# Changes


@pytest.mark.parametrize("names", SWITCHES, ids=lambda names: "+".join(names) or "none")
def test_a_change_is_the_smallest_that_does(names: tuple[str, ...]) -> None:
    """Wrong: people change more than they need, or the engine still stalls."""
    for cell in (c for c in reference_cells(2, 15 * len(SWITCHES)) if c.switches == names):
        setup = Setup(cell.settings, cell.rules, None)
        judgement = judge(setup)
        for steps in changes(setup) if judgement.stops else ():
            last = steps[-1]
            assert judge(last.setup).verdict is last.verdict is not Verdict.REFUTED
            if isinstance(last.after, int) and isinstance(last.before, int) and len(steps) == 1:
                assert last.before != last.after
        if judgement.stops:
            scenario = as_scenario(judgement.stops[0].layout, cell.settings)
            assert stops(ReferenceLoop(names), scenario)


def test_a_raised_setting_is_raised_no_further_than_needed() -> None:
    """Wrong: the cache is made larger than it must be."""
    settings = Settings(8, 16, 8, 5, 5, shift=1, num_drafts=1, num_requests=1, prefix_hits=False)
    rules = rules_of("0.32.0")
    (steps,) = [s for s in changes(Setup(settings, rules, "0.32.0")) if _is(s, "cache_size")]
    assert (steps[0].before, steps[0].after, steps[0].verdict) == (8, 11, Verdict.PROVED)


def _is(steps, name: str) -> bool:
    return len(steps) == 1 and steps[0].setting == name


# Releases


def test_a_release_between_two_alike_follows_their_rules() -> None:
    """Wrong: a release that nobody looked at is given rules that its neighbours do not share."""
    assert rules_of("0.22.0") == RELEASES["0.22.1"]
    assert rules_of("0.31.1") == RELEASES["0.31.0"]
    with pytest.raises(InputError, match="not known"):
        rules_of("0.27.5")
    with pytest.raises(InputError, match="not known"):
        rules_of("0.16.0")


def test_rules_can_be_given_instead_of_a_release() -> None:
    """Wrong: people of a fork, or of a change that is not yet released, cannot ask."""
    assert small("-sc", EAGLE, "--cut-shift", "1", "--requests", "1").exit_code == 1
    assert small("-sc", EAGLE, "--margin", "1", "--requests", "1").exit_code == 1
    assert small("-sc", EAGLE, "--margin", "0", "--requests", "1").exit_code == 0
    assert ReleaseRules() in RELEASES.values() or SWITCHES[()] == ReleaseRules()
