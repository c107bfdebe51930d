"""Real releases as targets: what they are known to do shows, and nothing else does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from impl.target import RUNNERS
from impl.vllm.launch.fetch import CI_RELEASES
from impl.vllm.launch.load import PATCHES, patches_for
from proofs.drive.origin import Origin
from proofs.report.pages.function_report import write_function_report
from spec.claims.assumptions import assumption
from spec.claims.texts import FUNCTION_CLAIMS
from spec.functions.case_files import dumps, loads
from spec.functions.cases import BookCase, BookOperation, Case, FreeCase, Progress
from spec.functions.findings import Finding, finding
from spec.record.feature import Feature
from tests.support.ready_runs import run_ready_tests
from tests.support.releases import ask, require_release

ROOT = Path(__file__).parents[2]
X, Y, Z = (Feature(0, 4, name) for name in "XYZ")

STALE_NOTICE = BookCase(
    8,
    ((X,), (Y,), (Z,), (X,)),
    (
        BookOperation("take", 0),
        BookOperation("take", 1),
        BookOperation("drop", 0),
        BookOperation("drop", 1),
        BookOperation("end_pass"),
        BookOperation("take", 2),
        BookOperation("take", 3),
        BookOperation("end_pass"),
    ),
)
ENCODER_DECODER_FREE = FreeCase((X,), 4, (Progress(1), Progress(2)), is_encoder_decoder=True)
ENCODER_DECODER_BOOK = BookCase(
    4,
    ((X,),),
    (BookOperation("take"), BookOperation("drop"), BookOperation("drop")),
    is_encoder_decoder=True,
)

LIMITED_BOOK = BookCase(
    8,
    ((X,), (Y,), (Z,)),
    (
        BookOperation("take", 0),
        BookOperation("drop", 0),
        BookOperation("take", 1, 0, 3),
        BookOperation("take", 1, 0, 4),
        BookOperation("take", 2, 0, None, 4),
        BookOperation("drop", 1),
        BookOperation("take", 2, 0, None, 4),
        BookOperation("take", 2, 0, 0, 9),
        BookOperation("end_pass"),
    ),
)
"""Refused for the budget, then for rows chosen before; evicts for those; a hit needs neither."""
LIMITED_ENCODER_DECODER_BOOK = BookCase(
    8,
    ((X, Feature(4, 4, "Y")),),
    (
        BookOperation("take", 0, 0, 3),
        BookOperation("take", 0, 0, 4, 4),
        BookOperation("take", 0, 1, None, 1),
        BookOperation("take", 0, 1),
    ),
    is_encoder_decoder=True,
)

ALWAYS = {
    ("encoder-decoder free", "slots-conserved", "free"),
    ("encoder-decoder book", "slots-conserved", "encoder_decoder_book"),
}
UP_TO_0_24 = {
    ("held-until-last-use", "held-until-last-use", "free"),
    ("stale notice", "evicted-not-live", "book"),
    ("hash-is-content", "slots-conserved", "book"),
}
EXPECTED = {
    "0.23.0": ALWAYS
    | UP_TO_0_24
    | {
        ("boundary-miss-tolerated", "boundary-miss-tolerated", "V1"),
        ("boundary-miss-tolerated", "boundary-miss-tolerated", "V2"),
        ("features-in-prompt", "freed-not-needed", "free"),
    },
    "0.24.0": ALWAYS | UP_TO_0_24,
    "0.33.0": ALWAYS,
}
"""Case, violated claim and part, by release; public faults only."""

OBSERVE = """
import json, sys
from impl.tensors import TensorSettings
from impl.vllm.launch.source import cache_folder, unpacked
from impl.vllm.functions.target import VllmTarget
from spec.monitor.functions.observed import check
from spec.functions.case_files import finding_to_json, loads

target = VllmTarget(unpacked(cache_folder(), sys.argv[1]))
found = []
for name, text in json.load(sys.stdin).items():
    case = loads(text).case
    if case.kind == "gather":
        seen = [(part, target.gather(case, part, TensorSettings())) for part in ("V1", "V2")]
    elif case.kind == "book":
        part = "encoder_decoder_book" if case.is_encoder_decoder else "book"
        seen = [(part, target.book(case))]
    else:
        seen = [(case.kind, getattr(target, case.kind)(case))]
    for part, observation in seen:
        for finding in check(case, observation, f"{target.name} {part}"):
            found.append([name, part, finding_to_json(finding)])
print("RESULT" + json.dumps(found))
"""


def cases() -> dict[str, Case]:
    named = {claim.id: claim.witness for claim in FUNCTION_CLAIMS.values()}
    for assumption_id in ("features-in-prompt", "hash-is-content"):
        breaking = assumption(assumption_id).on_functions
        assert breaking is not None
        named[assumption_id] = breaking.case
    return named | {
        "stale notice": STALE_NOTICE,
        "encoder-decoder free": ENCODER_DECODER_FREE,
        "encoder-decoder book": ENCODER_DECODER_BOOK,
        "limits": LIMITED_BOOK,
        "encoder-decoder limits": LIMITED_ENCODER_DECODER_BOOK,
    }


def run_python(script: str, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        input=given,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@cache
def observed(release: str) -> tuple[tuple[str, str, Finding], ...]:
    given = json.dumps({name: dumps(case) for name, case in cases().items()})
    found: list[tuple[str, str, Finding]] = []
    for name, part, data in ask(release, OBSERVE, given=given):
        text = json.dumps(
            {"schema": 1, "kind": "function-case", "case": data["case"], "findings": [data]}
        )
        found.append((name, part, loads(text).findings[0]))
    return tuple(found)


@pytest.mark.vllm
@pytest.mark.parametrize("release", CI_RELEASES)
def test_a_release_violates_exactly_what_is_known_in_public(release: str) -> None:
    """A fault that is missed, or one that is ours, would show here."""
    require_release(release)
    seen = {(name, finding.claim, part) for name, part, finding in observed(release)}
    assert seen == EXPECTED[release]


@pytest.mark.vllm
def test_the_boundary_miss_is_the_assertion_of_that_release() -> None:
    """Another error at the same place would be ours, not the release's."""
    require_release("0.23.0")
    seen = {
        part: finding.observed
        for name, part, finding in observed("0.23.0")
        if name == "boundary-miss-tolerated"
    }
    message = "AssertionError: Encoder cache miss for B."
    assert seen == dict.fromkeys(RUNNERS, message)


@cache
def outcomes_on(release: str, folder: Path) -> dict[str, str]:
    """The outcome of each ready test of a folder; all in one process, which imports the release."""
    outcomes, printed = run_ready_tests(folder, require_release(release).root)
    assert outcomes, printed
    return outcomes


LIMITS = {"book": LIMITED_BOOK, "encoder_decoder_book": LIMITED_ENCODER_DECODER_BOOK}


@pytest.fixture(scope="module")
def ready_tests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ready tests for everything that 0.23.0 violates, and for limits, which it holds to."""
    require_release("0.23.0")
    pages, tests = tmp_path_factory.mktemp("pages"), tmp_path_factory.mktemp("ready")
    (tests / "pytest.ini").write_text("[pytest]\n")
    origin = Origin("vllm 0.23.0", release="0.23.0", package=Path("vllm"))
    for _, _, violation in observed("0.23.0"):
        ready = write_function_report(violation, pages, origin).test
        assert ready is not None
        name = ready.parent.name.replace("-", "_")
        (tests / f"test_{name}.py").write_bytes(ready.read_bytes())
    limits = tmp_path_factory.mktemp("limits")
    newest = Origin("vllm 0.33.0", release="0.33.0", package=Path("vllm"))
    for part, case in LIMITS.items():
        made_up = finding(
            "book-exact",
            case,
            observed="refused",
            expected="allocated",
            target=f"vllm 0.33.0 {part}",
            mechanism="made up",
        )
        ready = write_function_report(made_up, limits, newest).test
        assert ready is not None
        (tests / f"test_limits_of_{part}.py").write_bytes(ready.read_bytes())
    return tests


def of_limits(name: str) -> bool:
    return "book_exact" in name


@pytest.mark.vllm
def test_every_ready_test_fails_on_its_release(ready_tests: Path) -> None:
    """A ready test that passes where the fault is shows nothing."""
    every = outcomes_on("0.23.0", ready_tests)
    outcomes = {name: outcome for name, outcome in every.items() if not of_limits(name)}
    assert set(outcomes.values()) == {"FAILED"}
    assert len(outcomes) == len({(part, f.claim) for _, part, f in observed("0.23.0")})


@pytest.mark.vllm
@pytest.mark.parametrize("release", ["0.24.0", "0.33.0"])
def test_a_ready_test_passes_where_its_fault_is_gone(release: str, ready_tests: Path) -> None:
    """A ready test that fails for another reason would accuse a good release."""
    outcomes = outcomes_on(release, ready_tests)
    failing = {
        f"test_{claim}_{part}".replace("-", "_").lower() for _, claim, part in EXPECTED[release]
    }
    assert {name for name, outcome in outcomes.items() if outcome != "PASSED"} == failing


@pytest.mark.vllm
@pytest.mark.parametrize("release", CI_RELEASES)
def test_a_ready_test_holds_takes_to_their_limits(release: str, ready_tests: Path) -> None:
    """A ready test with another budget than the case's would accuse a good release."""
    outcomes = outcomes_on(release, ready_tests)
    of_books = [outcome for name, outcome in outcomes.items() if of_limits(name)]
    assert of_books == ["PASSED"] * len(LIMITS)


def fake_package(folder: Path, content: str) -> Path:
    (folder / "vllm").mkdir(parents=True)
    (folder / "vllm" / "__init__.py").write_text(content)
    return folder


LOAD = """
import sys
from pathlib import Path
from impl.vllm.launch.load import load
from impl.vllm.launch.source import from_directory
from spec.errors import InputError

try:
    for folder in sys.argv[2:]:
        print(load(from_directory(Path(folder), Path(sys.argv[1]))).source.name)
except InputError as error:
    print("InputError:", error)
"""


def test_a_process_holds_one_vllm(tmp_path: Path) -> None:
    """Two releases in one process would mix their modules."""
    first = fake_package(tmp_path / "first", "")
    second = fake_package(tmp_path / "second", "")
    cache_dir = str(tmp_path / "cache")
    lines = run_python(LOAD, cache_dir, str(first), str(first), str(second)).stdout.splitlines()
    assert lines[0] == lines[1] == f"vllm at {first}"
    assert lines[2].startswith(f"InputError: this process has loaded vllm at {first}")
    assert "process of its own" in lines[2]


def test_a_missing_dependency_says_what_to_run(tmp_path: Path) -> None:
    """A bare ModuleNotFoundError does not say that there is an extra for it."""
    broken = fake_package(tmp_path / "broken", "import a_distribution_that_is_not_there\n")
    output = run_python(LOAD, str(tmp_path / "cache"), str(broken)).stdout
    assert "a_distribution_that_is_not_there" in output
    assert "make vllm" in output


def test_a_vllm_that_is_older_than_what_is_covered_is_refused(tmp_path: Path) -> None:
    """Without requests and features nothing can be called; that must not be a traceback."""
    old = fake_package(tmp_path / "old", "")
    script = LOAD.replace(
        "import load", "import load\nfrom impl.vllm.functions.target import VllmTarget"
    )
    script = script.replace("load(from", "VllmTarget(from").replace(
        ".source.name", ".missing('V2')"
    )
    output = run_python(script, str(tmp_path / "cache"), str(old)).stdout
    assert "InputError" in output
    assert "has no vllm.multimodal.inputs.PlaceholderRange" in output


def test_every_part_lists_its_own_patches() -> None:
    """A report must name what was changed for its part, and nothing that was not."""
    assert {patch.where for patch in patches_for("V1 with V2")} >= {
        "GPUModelRunner (V1)",
        "EncoderRunner (V2)",
    }
    assert "Scheduler" not in {patch.where for patch in patches_for("V1")}
    assert {patch.where for patch in patches_for("book of unlike contents")} == {
        "Request",
        "the compiled extension vllm._C",
    }
    assert all(patch.reason and patch.parts for patch in PATCHES)
