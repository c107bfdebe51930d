"""A whole ``vllm serve`` line, pasted: what counts, what is told, and what is a slip."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from proofs.commands.lint_config import lint_config
from proofs.settings.flags.command_line import close_to
from proofs.settings.flags.known import KNOWN, NOT_MODELLED
from proofs.settings.flags.other_flags import OTHER_FLAGS

PLAIN = ("--max-num-batched-tokens", "8", "--largest-item", "5")
EAGLE = ("-sc", '{"method": "eagle", "num_speculative_tokens": 1}')


def run(*arguments: str) -> Result:
    return CliRunner().invoke(lint_config, [*PLAIN, *arguments])


def not_looked_at(result: Result) -> str:
    """What the command says that it did not look at."""
    lines = [line for line in result.output.splitlines() if line.startswith("not looked at: ")]
    assert len(lines) <= 1
    return lines[0].removeprefix("not looked at: ") if lines else ""


@pytest.mark.parametrize(
    ("pasted", "expected"),
    [
        (("--tensor-parallel-size", "4"), "--tensor-parallel-size 4"),
        (("--tensor-parallel-size=4",), "--tensor-parallel-size 4"),
        (("--tensor_parallel_size", "4"), "--tensor-parallel-size 4"),
        (("-tp", "4"), "-tp 4"),
        (("--no-enable-log-requests",), "--no-enable-log-requests"),
        (("--allowed-origins", "a", "b"), "--allowed-origins a b"),
        (("--hf-overrides.a.b", "1"), "--hf-overrides.a.b 1"),
        (("--seed", "-1"), "--seed -1"),
        (("vllm", "serve", "some/model"), ""),
        (("vllm", "serve", "some/model", "another", "-tp", "4"), "another, -tp 4"),
        (("vllm", "serve", "-tp", "4"), "-tp 4"),
        (("serve", "some/model"), "serve, some/model"),
        (("--of-a-fork", "x"), "--of-a-fork x"),
    ],
)
def test_what_does_not_matter_is_accepted_and_told(pasted, expected) -> None:
    """Wrong: people cannot paste their line, or believe that all of it counts."""
    result = run(*pasted)
    assert result.exit_code == 0, result.output
    assert not_looked_at(result) == expected


def test_secrets_are_not_repeated() -> None:
    """Wrong: a key lands in the log of a CI job."""
    result = run("--api-key", "hush", "--hf-token=hush", "--ssl-keyfile", "hush")
    assert result.exit_code == 0
    assert "hush" not in result.output
    assert not_looked_at(result) == "--api-key ***, --hf-token ***, --ssl-keyfile ***"


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("--max-num-batched-token", "--max-num-batched-tokens"),
        ("--max-num-seq", "--max-num-seqs"),
        ("--disable-chunked-mm-inputs", "--disable-chunked-mm-input"),
        ("--no-enable-prefix-cachin", "--enable-prefix-caching"),
        ("--long_prefill_token_treshold", "--long-prefill-token-threshold"),
        ("--speculative-confg.method", "--speculative-config"),
    ],
)
def test_a_slip_is_an_error_that_says_what_was_meant(slip, meant) -> None:
    """Wrong: a setting that decides is passed over, and the verdict is about another engine."""
    result = run(slip, "4")
    assert result.exit_code == 2, result.output
    assert meant in result.output


def test_no_flag_of_vllm_is_taken_for_a_slip() -> None:
    """Wrong: a line with a flag that vLLM has is refused."""
    names = [name.replace("_", "-") for name in KNOWN]
    assert not OTHER_FLAGS & set(names)
    assert [flag for flag in OTHER_FLAGS if close_to(flag, names)] == []
    # Some would be: it is the list that saves them.
    plain = [flag for flag in OTHER_FLAGS if close_to(f"{flag}x", names)]
    assert plain


def test_entries_of_a_table_are_read_behind_a_dot() -> None:
    """Wrong: a drafter that is given like this is not seen, and its settings are called safe."""
    dotted = ("--speculative-config.method", "eagle")
    tokens = ("--speculative_config.num_speculative_tokens", "1")
    whole = run("--release", "0.32.0", *EAGLE)
    parts = run("--release", "0.32.0", *dotted, *tokens)
    short = run("--release", "0.32.0", "--spec-method", "eagle", "--spec-tokens", "1")
    mixed = run("--release", "0.32.0", "-sc", '{"method": "eagle"}', *tokens)
    assert whole.exit_code == 1
    assert parts.output == short.output == mixed.output == whole.output
    assert run("--release", "0.32.0").exit_code == 0


def test_fewer_active_sequences_count() -> None:
    """Wrong: requests are said to wait for each other where only one runs."""
    line = ("--release", "0.32.0", *EAGLE, "--largest-item", "2")
    assert run(*line).exit_code == 3
    assert run(*line, "--max-num-active-seqs", "1").exit_code == 0


@pytest.mark.parametrize("name", NOT_MODELLED)
def test_what_no_theorem_is_about_is_not_settled(name: str) -> None:
    """Wrong: an engine with other passes is called safe by theorems on these."""
    flag = f"--{name.replace('_', '-')}"
    switches = ("mm_encoder_only", "swa_bounded_replay")
    result = run(flag) if name in switches else run(flag, "2")
    assert result.exit_code == 3, result.output
    assert "not settled: passes-as-modelled" in result.output


def test_a_file_and_the_data_tell_it_too(tmp_path: Path) -> None:
    """Wrong: programs take a verdict for one on everything that was given."""
    file, data = tmp_path / "engine.yaml", tmp_path / "verdict.json"
    file.write_text("tensor-parallel-size: 4\nmodel: some/model\n", encoding="utf-8")
    result = run("--config", str(file), "--port", "80", "--json", str(data))
    assert result.exit_code == 0, result.output
    assert not_looked_at(result) == "tensor-parallel-size, model, --port 80"
    seen = json.loads(data.read_text(encoding="utf-8"))["settings"]["not_looked_at"]
    assert seen == ["tensor-parallel-size", "model", "--port 80"]


@pytest.mark.parametrize(
    ("given", "advised"),
    [
        ('{"image":4}', """'{"image": 1}' instead of '{"image": 4}'"""),
        (
            '{"video":0,"image":3,"audio":2}',
            (
                """'{"video": 0, "image": 1, "audio": 0}' instead of """
                """'{"video": 0, "image": 3, "audio": 2}'"""
            ),
        ),
        (
            '{"image":{"count":4,"width":512}}',
            (
                """'{"image": {"count": 1, "width": 512}}' instead of """
                """'{"image": {"count": 4, "width": 512}}'"""
            ),
        ),
        ("4", "1 instead of 4"),
    ],
)
def test_a_limit_on_items_is_advised_as_it_was_given(given: str, advised: str) -> None:
    """Wrong: people paste a number, and the engine that wants a table does not start."""
    line = ("vllm", "serve", "some/model", "--requests", "1", "--limit-mm-per-prompt", given)
    result = run("--release", "0.32.0", *EAGLE, *line)
    assert result.exit_code == 1, result.output
    assert f"--limit-mm-per-prompt {advised}" in result.output
