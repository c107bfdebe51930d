"""Releases that nobody looked at: ``lint-config`` reads their rules, or says that it cannot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from impl.vllm.launch.fetch import CI_RELEASES
from impl.vllm.launch.source import cache_folder, unpacked
from proofs.commands.main import main
from proofs.settings.flags.arguments import setup_of
from proofs.settings.judge import judge
from proofs.source.code.recorders import OVERRIDES
from proofs.source.code.release import ReleaseSource
from proofs.source.elsewhere import Elsewhere
from proofs.source.passes.release_rules import rules_of_source
from spec.rules.releases import ReadRules, rules_of
from spec.verdict import Verdict
from tests.support.fake_scheduler import write_scheduling_release

READ = (
    "margin",
    "cut_shift",
    "whole_cut_shift",
    "largest_shift",
    "encodes_boundary",
    "splits_at_start",
    "splits_cached",
    "reservation",
)
"""Rules that are proved of a source."""


def run(*arguments: str) -> Result:
    line = ("--max-num-batched-tokens", "8", "--largest-item", "4", *arguments)
    return CliRunner().invoke(main, ["lint-config", *line])


@pytest.mark.vllm
@pytest.mark.parametrize("release", CI_RELEASES)
def test_rules_read_in_a_release_are_those_of_the_table(release: str) -> None:
    """Wrong: a row of the table, or a source that is judged by rules that it does not follow."""
    source = unpacked(cache_folder(), release)
    if source is None:
        pytest.skip(f"vllm {release} was not fetched; run `residency vllm fetch {release}`")
    read, expected = rules_of_source(ReleaseSource(source.package, OVERRIDES)), rules_of(release)
    assert read.missing == ()
    for name in READ:
        assert getattr(read.rules, name) == getattr(expected, name), name


def test_code_that_is_no_known_rule_is_told(tmp_path: Path) -> None:
    """Wrong: a source is judged by rules that were not proved of it."""
    package = write_scheduling_release(tmp_path, "max(first - position.offset, 0)", "0")
    read = rules_of_source(ReleaseSource(package, OVERRIDES))
    assert any(sentence.startswith("how encoder inputs are scheduled") for sentence in read.missing)


GIVEN = {"max_num_batched_tokens": 8, "largest_item": 4}
PROVED_RULES = rules_of("0.33.0")


def verdict(read: ReadRules, **more: object) -> Verdict:
    return judge(setup_of({**GIVEN, **more}, {}, read)).verdict


def test_what_is_not_read_and_matters_is_unknown() -> None:
    """Wrong: "cannot stall", or "can stall", of a source by a rule of another release."""
    read = ReadRules(PROVED_RULES, ())
    assert verdict(read) is Verdict.PROVED
    assert verdict(read, block_alignment=4) is Verdict.UNKNOWN
    assert verdict(read, long_prefill_token_threshold=4) is Verdict.UNKNOWN
    assert verdict(ReadRules(PROVED_RULES, ("something",))) is Verdict.UNKNOWN
    eagle = {"speculative_config": {"method": "eagle", "num_speculative_tokens": 1}}
    stops = ReadRules(replace(rules_of("0.32.0"), stalled_head_ends_pass=False), ())
    assert verdict(stops, **eagle) is Verdict.REFUTED
    assert verdict(replace(stops, missing=("something",)), **eagle) is Verdict.UNKNOWN


def test_a_later_release_is_unknown_and_says_what_to_do() -> None:
    """Wrong: the next release is refused as wrong input, or judged by rules that may be gone."""
    result = run("--release", "0.34.0")
    assert result.exit_code == 3, result.output
    assert result.output.startswith("not settled: rules-known")
    assert "--source DIR" in result.output
    eagle = ("-sc", '{"method": "eagle", "num_speculative_tokens": 1}', "--encoder-cache-size", "4")
    assert run("--release", "0.34.0", *eagle).exit_code == 3
    assert run("--release", "0.34.0", "--margin", "0").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--source", "/nowhere"), "no vLLM"),
        (("--source", ".", "--release", "0.33.0"), "two vLLMs"),
    ],
)
def test_wrong_sources_are_refused(arguments: tuple[str, ...], message: str) -> None:
    """Wrong: a slip in the folder judges some other vLLM."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_a_source_is_judged_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong: rules that were read never reach the verdict."""
    package = tmp_path / "vllm"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "v1" / "core").mkdir(parents=True)

    monkeypatch.setattr(Elsewhere, "rules", lambda _: ReadRules(PROVED_RULES, ()))
    result = run("--source", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "no prompt stops the vLLM of this source" in result.output
    assert "all-else-as-in-0.33.0" in result.output.splitlines()[-1]
