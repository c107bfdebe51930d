"""Our stand-ins for parts of vLLM: what they do not fit is never told of vLLM.

Each test makes a change to a copy of a release's source that changes nothing of what it does, as a
refactoring might, and runs it in a process of its own.
"""

from __future__ import annotations

import ast
import json
import os
import re
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from impl.harness import calls
from impl.target import AdapterError
from impl.vllm.functions.objects import HalfMade, half_made, observed
from impl.vllm.launch.load import patches_for
from impl.vllm.launch.source import cache_folder, unpacked
from impl.vllm.runs import config, recording
from tests.vllm.test_vllm_target import run_python

NEWEST = "0.33.0"
SCHEDULER = "v1/core/sched/scheduler.py"
BOOK = "v1/core/encoder_cache_manager.py"
RUNNER_V1 = "v1/worker/gpu_model_runner.py"

OBSERVE = """
import json, sys
from pathlib import Path
from impl.vllm.functions.target import VllmTarget
from impl.vllm.launch.source import from_directory
from impl.vllm.runs.target import VllmLoop
from impl.target import AdapterError
from proofs.run.record import record
from proofs.search.functions.check import run_check
from proofs.search.functions.results import CheckSettings
from spec.claims.witnesses import TWO_ITEMS
from spec.monitor.monitor import LoopMonitor
from spec.record.config import EngineConfig
from spec.record.scenario import Scenario, ScenarioRequest

folder, work = Path(sys.argv[1]), json.load(sys.stdin)
source = from_directory(folder, folder.parent / "cache")
loop = VllmLoop(source)
found = {"loop": {}, "functions": {}}
for runner in work["runners"]:
    try:
        monitor = LoopMonitor(TWO_ITEMS, runner)
        recording = record(loop, TWO_ITEMS, runner, monitor=monitor)
        claims = sorted({finding.claim for finding in recording.findings})
        calls = [call.method for step in recording.trace.steps for call in step.calls]
        found["loop"][runner] = [claims, recording.trace.ending, sorted(set(calls))]
    except Exception as error:
        found["loop"][runner] = f"{type(error).__name__}: {error}"
if work["parts"]:
    report = run_check(VllmTarget(source), CheckSettings(parts=tuple(work["parts"]), examples=30))
    for result in report.results:
        found["functions"][f"{result.part} {result.claim}"] = [
            result.verdict.name, result.reason or ""
        ]
if work["subclass"]:
    (folder / "mine.py").write_text(
        "from vllm.v1.core.sched.scheduler import Scheduler\\n"
        "class Mine(Scheduler):\\n"
        "    def __init__(self, *args, **kwargs):\\n"
        "        super().__init__(*args, **kwargs)\\n"
    )
    sys.path.insert(0, str(folder))
    config = EngineConfig(8, 8, 8, 16, scheduler_lookahead=2, gather_lookahead=1,
                          num_speculative_tokens=2)
    mine = VllmLoop(source, scheduler_class="mine:Mine")
    found["subclass"] = mine.missing(Scenario(config, (ScenarioRequest(4),)), "V2")
print("RESULT" + json.dumps(found))
"""


def edited(folder: Path, *edits: tuple[str, str, str]) -> Path:
    """A copy of a release in which some texts are others; unchanged files are links."""
    source = unpacked(cache_folder(), NEWEST)
    if source is None or find_spec("transformers") is None:
        pytest.skip(f"NOT CHECKED: vllm {NEWEST} is not at hand; run `make vllm`")
    copytree(source.package, folder / "vllm", copy_function=os.symlink)
    for name, pattern, replacement in edits:
        file = folder / "vllm" / name
        text, count = re.subn(pattern, replacement, file.read_text())
        assert count, f"{name} holds no {pattern}"
        file.unlink()
        file.write_text(text)
    return folder


def seen(
    folder: Path, runners: list[str], parts: list[str], *, subclass: bool = False
) -> dict[str, Any]:
    given = json.dumps({"runners": runners, "parts": parts, "subclass": subclass})
    done = run_python(OBSERVE, str(folder), given=given)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT"))
    result: dict[str, Any] = json.loads(line.removeprefix("RESULT"))
    return result


@pytest.mark.vllm
def test_a_call_by_name_and_a_new_attribute_are_not_blamed_on_vllm(tmp_path: Path) -> None:
    """Wrong: a caller that names its arguments, or a new attribute of a runner, is a finding."""
    by_name = (
        SCHEDULER,
        r"can_allocate\(\s+request, i, encoder_compute_budget, num_embeds_to_schedule\s+\)",
        (
            "can_allocate(request=request, num_embeds_to_schedule=num_embeds_to_schedule, "
            "input_id=i, encoder_compute_budget=encoder_compute_budget)"
        ),
    )
    new_attribute = (
        RUNNER_V1,
        r"(?<=        mm_embeds = list\[torch.Tensor\]\(\)\n)(?=        is_mm_embed = torch.zeros)",
        "        _ = self.an_attribute_that_is_new\n",
    )
    folder = edited(tmp_path / "tree", by_name, new_attribute)
    found = seen(folder, ["V1", "V2"], ["V1", "V2"])
    claims, ending, called = found["loop"]["V2"]
    assert (claims, ending) == ([], "idle")
    assert "can_allocate" in called
    assert found["loop"]["V1"].startswith(
        "AdapterError: this vLLM reads 'an_attribute_that_is_new'"
    )
    verdicts = {verdict for verdict, _ in found["functions"].values()}
    assert verdicts <= {"HELD", "VACUOUS", "ERROR"}
    v1 = [(v, reason) for name, (v, reason) in found["functions"].items() if name[:3] == "V1 "]
    assert {verdict for verdict, _ in v1} == {"ERROR"}
    assert all("an_attribute_that_is_new" in reason for _, reason in v1)


@pytest.mark.vllm
def test_a_renamed_attribute_of_the_book_is_an_error(tmp_path: Path) -> None:
    """Wrong: a book whose entries we no longer find passes for one that keeps none."""
    rename = (BOOK, r"\bself\.cached\b", "self.entries")
    folder = edited(tmp_path / "tree", rename)
    found = seen(folder, ["V2"], ["free", "book"])
    assert "no attribute 'cached'" in found["loop"]["V2"]
    assert {verdict for verdict, _ in found["functions"].values()} == {"ERROR"}


@pytest.mark.vllm
def test_a_book_without_a_method_that_free_calls_is_no_calm(tmp_path: Path) -> None:
    """Wrong: a release whose own *free* raises is told as one that cannot be checked.

    Nor does a scheduler with a constructor of its own lose a shift above 1 that its base has.
    """
    rename = (BOOK, r"def get_cached_input_ids\b", "def get_input_ids")
    folder = edited(tmp_path / "tree", rename)
    found = seen(folder, [], ["free"], subclass=True)
    assert found["subclass"] is None
    assert found["functions"]["free no-error"][0] == "REFUTED"


def test_an_error_of_our_own_is_no_observation() -> None:
    """Wrong: what a stand-in lacks, or our own code does, is recorded as done by vLLM."""

    class Runner:
        def __init__(self) -> None:
            self.known = 1

    runner = object.__new__(half_made(Runner))
    assert isinstance(runner, Runner)
    assert isinstance(runner, HalfMade)
    with pytest.raises(AttributeError) as lacking:
        _ = runner.known
    with pytest.raises(AdapterError, match="reads 'known' of Runner"):
        observed(lacking.value)
    with pytest.raises(AttributeError) as of_the_release:
        _ = Runner().gone  # type: ignore[attr-defined]
    assert observed(of_the_release.value).type == "AttributeError"
    find = calls.argument(lambda request: None, "input_id", 1)
    with pytest.raises(AdapterError) as ours:
        find((), {})
    with pytest.raises(AdapterError):
        observed(ours.value)
    with pytest.raises(AttributeError) as within:
        config._shift(None)
    with pytest.raises(AdapterError, match=r"our own code .*runs/config.py"):
        observed(within.value)


def test_a_wrapper_takes_every_call_that_the_method_takes() -> None:
    """Wrong: a call by name, or with a default, is refused or recorded with other arguments."""

    class Request:
        request_id = "r0"

    class Book:
        def check_and_update_cache(self, request: Any, input_id: int) -> bool:
            return True

        def can_allocate(self, request: Any, index: int, budget: int, chosen: int = 0) -> bool:
            return budget > chosen

        def allocate(self, request: Any, input_id: int, *, note: str = "") -> None:
            return None

        def free_encoder_input(self, request: Any, input_id: int) -> None:
            return None

        def free(self, request: Any) -> None:
            self.free_encoder_input(request, 0)

        def reset(self) -> None:
            return None

    book, log = Book(), calls.CallLog({"r0": 0})
    calls.record_book(book, log)
    request = Request()
    book.check_and_update_cache(input_id=3, request=request)
    book.can_allocate(request, chosen=2, budget=5, index=4)
    book.can_allocate(request, 1, 7)
    book.allocate(request, input_id=2, note="x")
    book.free(request)
    book.reset()
    kept = [(c.method, c.request, c.feature, c.answer, c.budget, c.chosen) for c in log.take()]
    assert kept == [
        ("check_and_update_cache", 0, 3, True, 0, 0),
        ("can_allocate", 0, 4, True, 5, 2),
        ("can_allocate", 0, 1, True, 7, 0),
        ("allocate", 0, 2, None, 0, 0),
        ("free", 0, -1, None, 0, 0),
        ("reset", -1, -1, None, 0, 0),
    ]
    with pytest.raises(TypeError, match="input_id"):
        book.allocate(request)  # type: ignore[call-arg]


def assigned(module: Any) -> set[str]:
    """Attributes of other objects that a module sets."""
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    targets = [
        target for node in ast.walk(tree) if isinstance(node, ast.Assign) for target in node.targets
    ]
    return {
        target.attr
        for target in targets
        if isinstance(target, ast.Attribute)
        and not (isinstance(target.value, ast.Name) and target.value.id == "self")
    }


def test_all_that_is_set_or_wrapped_is_listed() -> None:
    """Wrong: a report keeps to itself that something is not as the release has it."""
    listed = " ".join(f"{patch.where} {patch.change}" for patch in patches_for("loop"))
    names = assigned(config) | {"_reject_on_encoder_cache_embed_mismatch", "allocate_slots"}
    names |= {"can_allocate", "free", "reset", recording.BEGIN_TURN, *calls.WITH_FEATURE}
    names -= {"cancel", "method", "async_scheduling"}  # The drafter's and asynchrony: in words.
    missing = {name for name in names if not re.search(rf"\b{name}\b", listed)}
    assert missing == set()
