"""Test files and stories made from whole runs: they stand alone, and fail where the fault is."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from impl.target import RUNNERS, Runner
from impl.targets.runs import ReferenceLoop
from impl.vllm.launch.source import cache_folder, unpacked
from proofs.drive.origin import Origin
from proofs.report.pages.account import account_of
from proofs.report.pages.reproduce import Links
from proofs.report.pages.run_report import run_page, write_run_reports
from proofs.report.ready.reach import needed_settings, reach_of_scenario
from proofs.report.ready.run import has_loop_ready_test, loop_ready_test
from proofs.report.text.literals import LINE_LENGTH
from proofs.run.record import record
from proofs.search.runs.results import LoopCounterexample
from spec.claims.texts import LOOP_CLAIMS
from spec.errors import InputError
from spec.monitor.monitor import LoopMonitor
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Continuation, FailedLoad, Scenario, ScenarioRequest
from spec.record.steps import Trace
from tests.support.html_pages import text_of
from tests.support.ready_runs import run_ready_tests
from tests.support.vllm_found_faults import FOUND
from tests.support.vllm_loop_faults import RECORDED
from tests.support.written_reports import write_all

READY = tuple(claim.id for claim in LOOP_CLAIMS.values() if has_loop_ready_test(claim.id))

_CONFIG = EngineConfig(8, 4, 4, num_kv_blocks=60)
_ITEM = Feature(0, 2, "A")
PLAIN = Scenario(_CONFIG, (ScenarioRequest(3, (_ITEM,)),))
DRAFTER = replace(
    _CONFIG, scheduler_lookahead=2, gather_lookahead=1, num_speculative_tokens=2, whole_items=True
)
MASKED = Feature(0, 4, "A", (False, True, True, False))
SCENARIOS: dict[str, Scenario] = {
    "plain": PLAIN,
    "drafter": Scenario(
        DRAFTER, (ScenarioRequest(6, (MASKED,), max_tokens=3, accepted_drafts=(1, 0)),)
    ),
    "async drafter": Scenario(
        replace(DRAFTER, async_depth=1, whole_items=False, policy="priority"),
        (
            ScenarioRequest(6, (MASKED,), max_tokens=3, accepted_drafts=(1,), priority=2),
            ScenarioRequest(2, arrival=2),
        ),
    ),
    "store": Scenario(
        replace(_CONFIG, prefix_caching=True, long_prefill_token_threshold=3),
        (ScenarioRequest(5, (_ITEM,), prefix_hits=(2,), failed_loads=(FailedLoad(0, 1),)),),
    ),
    "stream": Scenario(
        replace(_CONFIG, async_depth=1),
        (ScenarioRequest(3, (_ITEM,), continuations=(Continuation(4, 2, (Feature(1, 1, "B"),)),)),),
        resets=(2,),
    ),
    "late close": Scenario(
        _CONFIG,
        (
            ScenarioRequest(3, (_ITEM,), continuations=(Continuation(4, 2),), close=7),
            ScenarioRequest(3, (_ITEM,), close=2),
        ),
    ),
    "abort": Scenario(
        replace(_CONFIG, block_alignment=2), (ScenarioRequest(5, (_ITEM,), abort=1),), resets=(1,)
    ),
    "encoder-decoder": Scenario(
        replace(_CONFIG, is_encoder_decoder=True), (ScenarioRequest(2, (_ITEM,), max_tokens=2),)
    ),
}


def made_up(claim: str, pass_index: int = 0) -> LoopFinding:
    return LoopFinding(claim, pass_index, 0, None, "this", "that", "made up")


def generated(claim: str, scenario: Scenario, runner: Runner = "V1") -> str:
    target = "vllm 0.33.0"
    return loop_ready_test(made_up(claim), scenario, target, runner, "it", runners=RUNNERS)


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_ready_test_stands_alone(name: str, runner: Runner) -> None:
    """A file that needs this project, or a name that it does not define, cannot be proposed."""
    scenario = SCENARIOS[name]
    scenario.validate()
    allowed = {"json", "collections", "dataclasses", "pytest", "torch", "vllm"}
    for claim in READY:
        tree = ast.parse(generated(claim, scenario, runner))
        imported = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                assert node.module is not None
                assert node.level == 0
                imported.add(node.module.split(".")[0])
            elif isinstance(node, ast.Import):
                imported.update(alias.name.split(".")[0] for alias in node.names)
        assert imported <= allowed, (claim, imported - allowed)


def test_a_plain_scenario_leaves_nothing_unused_in_its_file() -> None:
    """A reviewer would have to read code for prefixes, drafts, turns and aborts that never run."""
    words = ("Connector", "Speculative", "Draft", "resumable", "deque", "Async", "abort", "reset")
    for claim in READY:
        text = generated(claim, PLAIN)
        assert [word for word in words if word in text.split('"""', 2)[2]] == [], claim


def test_an_identifier_stays_a_literal() -> None:
    """A hash with quotes or line ends would run as code, or end the docstring."""
    wild = 'A"""\n{{ config }}\nimport os'
    scenario = Scenario(_CONFIG, (ScenarioRequest(3, (Feature(0, 2, wild),)),))
    for claim in READY:
        tree = ast.parse(generated(claim, scenario))
        constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        assert wild in constants


def test_a_claim_without_a_ready_test_is_refused() -> None:
    """A file that checks nothing of the claim would pass everywhere."""
    without = {claim.id for claim in LOOP_CLAIMS.values()} - set(READY)
    assert {"runners-agree", "counts-agree", "rows-exact"} <= without
    for claim in without:
        with pytest.raises(InputError, match=claim):
            generated(claim, PLAIN)
    contents = Scenario(
        _CONFIG,
        (
            ScenarioRequest(3, (_ITEM,), contents=("one",)),
            ScenarioRequest(3, (_ITEM,), contents=("other",)),
        ),
    )
    with pytest.raises(InputError, match="two contents"):
        generated("target-resident", contents)


def test_reach_names_what_defaults_do_not_give() -> None:
    """A fault that needs a flag, told as one of the defaults, would be an exaggeration."""
    assert reach_of_scenario(PLAIN).answer == "yes"
    assert reach_of_scenario(PLAIN, ("V1",)).answer == "no"
    assert reach_of_scenario(SCENARIOS["drafter"]).answer == "no"
    needed = " ".join(needed_settings(SCENARIOS["drafter"]))
    for words in ("2 draft tokens", "2 modules", "--disable-chunked-mm-input"):
        assert words in needed
    assert needed_settings(SCENARIOS["stream"]) == [
        "streaming input",
        "a reset of the encoder cache",
    ]
    assert "--long-prefill-token-threshold 3" in needed_settings(SCENARIOS["store"])
    assert needed_settings(SCENARIOS["encoder-decoder"]) == ["an encoder-decoder model"]


def stalled() -> tuple[LoopFinding, Trace]:
    scenario = next(fault.scenario for fault in RECORDED if fault.name == "shifted-cut")
    target = ReferenceLoop(["shifted-cut"])
    monitor = LoopMonitor(scenario, "V1")
    recording = record(target, scenario, "V1", monitor=monitor, max_passes=30)
    finding = next(f for f in recording.findings if f.claim == "no-stall")
    return finding, recording.trace


def on_vllm(finding: LoopFinding, trace: Trace) -> tuple[LoopCounterexample, Origin]:
    """The violation as if a release had shown it, so that it gets what upstream needs."""
    target = "vllm 0.32.0"
    example = LoopCounterexample(finding, replace(trace, target=target), RUNNERS)
    return example, Origin(target, release="0.32.0", package=Path("vllm"))


def test_the_report_tells_each_pass_up_to_the_fault() -> None:
    """Whoever cannot follow the run in small integers has no reason to believe the test."""
    finding, trace = stalled()
    account = account_of(*on_vllm(finding, trace))
    text = text_of(run_page(account, Links()))
    assert finding.loop is not None
    for index in range(finding.loop[0] + 1):
        assert f"Pass {index}: " in text
    assert "The request runs the positions [0,3)" in text
    assert "B[4,8) gets no room, because needed 4 <= available 0 is false" in text
    assert "The request gets no token and stays at 3" in text
    assert "Nothing runs" in text
    assert "default settings no: it takes speculative decoding with 1 draft token" in " ".join(
        text.split()
    )
    assert "Asynchronous scheduling was not tried" in text
    assert "python -m pytest test_repro.py" in text


def test_a_finding_gets_a_page_and_a_test_where_there_is_one(tmp_path: Path) -> None:
    """A report without its test, or a page that names a test that is not there, misleads."""
    finding, trace = stalled()
    example, origin = on_vllm(finding, trace)
    other = replace(example, finding=replace(finding, claim="counts-agree"), runners=("V1",))
    reports = write_run_reports([example, other], origin, tmp_path, lambda _: None)
    written = write_all(reports, tmp_path, origin)
    with_test = tmp_path / f"no-stall-{finding.fingerprint}"
    without = tmp_path / f"counts-agree-{other.finding.fingerprint}"
    names = {"report.html", "report.md", "trace.json", "trace.itf.json", "scenario.json"}
    assert {path.name for path in with_test.iterdir()} == {*names, "test_repro.py"}
    assert {path.name for path in without.iterdir()} == names
    assert set(written) == {*with_test.iterdir(), *without.iterdir(), tmp_path / "index.html"}
    for name in ("report.html", "report.md"):
        assert "pytest test_repro.py" in (with_test / name).read_text(encoding="utf-8")
        assert "pytest" not in (without / name).read_text(encoding="utf-8")
    test = (with_test / "test_repro.py").read_text(encoding="utf-8")
    assert f"def test_no_stall_{finding.fingerprint}(" in test
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert f'"{with_test.name}/test_repro.py"' in index
    assert f'"{without.name}/test_repro.py"' not in index


def test_ready_tests_pass_the_linter_and_formatter_of_upstream(tmp_path: Path) -> None:
    """A file that fails upstream's own checks cannot be proposed there."""
    source = unpacked(cache_folder(), "0.33.0")
    if source is None or source.lint_settings is None:
        pytest.skip("NOT CHECKED: vllm 0.33.0 is not in the cache; run `make vllm`")
    (tmp_path / "pyproject.toml").write_bytes(source.lint_settings.read_bytes())
    (tmp_path / "vllm").symlink_to(source.package)
    folder = tmp_path / "tests" / "v1" / "core"
    folder.mkdir(parents=True)
    for number, (claim, name) in enumerate((c, n) for c in READY for n in SCENARIOS):
        text = generated(claim, SCENARIOS[name], "V1" if number % 2 else "V2")
        (folder / f"test_{number}.py").write_text(text, encoding="utf-8")
        assert max(map(len, text.splitlines())) <= LINE_LENGTH, (claim, name)
    for arguments in (["check"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--no-cache", str(folder)]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.vllm
def test_ready_tests_fail_where_the_fault_is_and_pass_where_it_is_gone(tmp_path: Path) -> None:
    """A test that fails for another reason, or that passes with the fault, proves nothing."""
    release = "0.33.0"
    source = unpacked(cache_folder(), release)
    if source is None or find_spec("z3") is None:
        pytest.skip(f"vllm {release} was not fetched; run `residency vllm fetch {release}`")
    expected = {}
    for fault in (fault for fault in FOUND if has_loop_ready_test(fault.claim)):
        for runner in (r for r in RUNNERS if r in fault.runners):
            name = f"{fault.name}_{runner}".replace("-", "_")
            text = generated(fault.claim, fault.scenario, runner).replace("test_it", f"test_{name}")
            (tmp_path / f"test_{name}.py").write_text(text, encoding="utf-8")
            expected[f"test_{name}"] = "FAILED"
    for recorded in RECORDED:
        if recorded.first_good == release:
            name = f"gone_{recorded.name}".replace("-", "_")
            # Only a work-conserving test asks for the request and its pass.
            finding = LoopFinding(recorded.claim, 1, 2, None, "this", "that", "made up")
            text = loop_ready_test(
                finding, recorded.scenario, "vllm 0.32.0", "V1", name, runners=RUNNERS
            )
            (tmp_path / f"test_{name}.py").write_text(text, encoding="utf-8")
            expected[f"test_{name}"] = "PASSED"
    outcomes, printed = run_ready_tests(tmp_path, source.root)
    assert outcomes == expected, printed
    # Every failure is the claim's own assertion, none an accident of the driver.
    own = ("AssertionError: step ", "AssertionError: after step ", "AssertionError: unfinished ")
    failures = [line for line in printed.splitlines() if line.startswith(str(tmp_path))]
    for line in failures:
        assert any(text in line for text in (*own, "Failed: step ")), line
    assert len(failures) == list(expected.values()).count("FAILED")
