"""Hypothesis profiles, the device that tensors live on, and the pool of cases that tests share."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy
from xdist.remote import Producer

from impl.target import FunctionTarget
from impl.targets.functions import ReferenceTarget
from impl.tensors import TensorSettings
from proofs.search.functions import strategies
from spec.claims.texts import FUNCTION_CLAIMS
from spec.functions.cases import BookCase, BookOperation, Case, FreeCase, GatherCase, RowRangeCase
from spec.functions.findings import Finding
from spec.monitor.functions.observed import check, check_runners_agree
from spec.record.feature import Feature
from tests.support.chromium import NO_BROWSER, chromium
from tests.support.nightly import NIGHTLY, summary
from tests.support.sharing_out import WholeFiles, longest_first

CUDA_UNTESTED = (
    "CUDA WAS NOT TESTED: no CUDA device here; every test that takes a device ran on cpu only"
)

settings.register_profile("dev", max_examples=60, deadline=None)
settings.register_profile(
    "ci", max_examples=200, deadline=None, derandomize=True, print_blob=True, database=None
)
settings.register_profile(NIGHTLY, max_examples=5000, deadline=None, print_blob=True)
if find_spec("hypothesis_crosshair_provider"):
    settings.register_profile(
        "crosshair",
        backend="crosshair",
        max_examples=60,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
settings.load_profile("dev")

# A shell lets what it runs in the background ignore Ctrl-C, and processes inherit that. The
# commands whose interruption is tested would run on.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

FindingsOf: TypeAlias = Callable[[FunctionTarget, Case], tuple[Finding, ...]]
"""Observes a target with a case, and checks every claim on what was seen."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests that take a ``device`` on the CPU, and on CUDA where there is one."""
    if "device" in metafunc.fixturenames:
        cuda = ["cuda"] if torch.cuda.is_available() else []
        metafunc.parametrize("device", ["cpu", *cuda])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest."""
    items[:] = longest_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> WholeFiles:
    """Give each process whole files, whatever ``--dist`` says."""
    return WholeFiles(config, log)


def _untested() -> list[str]:
    """What cannot be tested here."""
    cuda = [] if torch.cuda.is_available() else [CUDA_UNTESTED]
    return [*cuda, *([] if chromium() else [NO_BROWSER])]


def pytest_report_header() -> list[str]:
    """Say first what is not tested."""
    return _untested()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say last what was not tested, or only in part."""
    left = summary()
    for line in [*_untested(), *([] if left is None else [left])]:
        terminalreporter.write_line(line, red=True, bold=True)


def drawn(strategy: SearchStrategy[Case], count: int) -> list[Case]:
    """The same ``count`` draws (less repetitions) on every run."""
    cases: dict[Case, None] = {}

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        backend="hypothesis",
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(case: Case) -> None:
        cases[case] = None

    collect()
    return list(cases)


class Draws:
    """What was drawn, kept for all processes of a run: drawing costs more than most checks.

    Args:
        folder: of this run, and of no other.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[str, list[Case]] = {}

    def __call__(self, strategy: SearchStrategy[Case], count: int) -> list[Case]:
        """:func:`drawn`, once for each strategy of cases and count."""
        name = f"{strategy!r} {count}"
        if name not in self._kept:
            file = self._folder / f"{name}.pickle"
            if not file.exists():
                self._folder.mkdir(exist_ok=True)
                own = file.with_suffix(f".{os.getpid()}")
                own.write_bytes(pickle.dumps(drawn(strategy, count)))
                own.replace(file)
            self._kept[name] = pickle.loads(file.read_bytes())
        return list(self._kept[name])


def findings_of(target: FunctionTarget, case: Case) -> tuple[Finding, ...]:
    """Findings on all parts of the target that the case concerns."""
    match case:
        case GatherCase():
            tensors = TensorSettings()
            first = target.gather(case, "V1", tensors)
            second = target.gather(case, "V2", tensors)
            return (
                *check(case, first, f"{target.name} V1"),
                *check(case, second, f"{target.name} V2"),
                *check_runners_agree(case, first, second, target.name),
            )
        case FreeCase():
            return check(case, target.free(case), target.name)
        case BookCase():
            return check(case, target.book(case), target.name)
        case RowRangeCase():
            return check(case, target.row_range(case), target.name)
    return check(case, target.window(case), target.name)


def _directed_cases() -> list[Case]:
    """Known hard spots of the book, which take a chain of events that draws seldom make."""
    x, y, z = Feature(0, 4, "X"), Feature(0, 4, "Y"), Feature(0, 4, "Z")
    smaller = Feature(0, 2, "W")

    def operations(text: str) -> tuple[BookOperation, ...]:
        actions = {"t": "take", "d": "drop", "f": "finish"}
        return tuple(
            BookOperation("end_pass")
            if word == "end"
            else BookOperation(actions[word[0]], int(word[1]))
            for word in text.split()
        )

    requests = ((x,), (y,), (z,), (x,), (smaller,))
    again = ((x, Feature(4, 4, "X")), (y,))
    return [
        # X and Y unreferenced, X longest: Z evicts X, then X evicts Y: only Y may be announced.
        BookCase(8, requests, operations("t0 t1 d0 d1 t2 t3 end end")),
        # Y unreferenced longest although X came first.
        BookCase(8, requests, operations("t0 t1 d1 d0 t2 end")),
        # A hit in between saves X.
        BookCase(8, requests, operations("t0 t1 d0 d1 t3 t2 end d3 t1 end")),
        # Room for a small item without an eviction; the exact fit; no room.
        BookCase(6, requests, operations("t0 t4 d4 t4 d0 t1 t2 end")),
        # One request twice, another one beside it.
        BookCase(
            4,
            again,
            (
                BookOperation("take", 0, 0),
                BookOperation("take", 0, 1),
                BookOperation("drop", 0, 0),
                BookOperation("take", 1, 0),
                BookOperation("drop", 0, 1),
                BookOperation("take", 1, 0),
                BookOperation("end_pass"),
                BookOperation("reset"),
                BookOperation("take", 1, 0),
            ),
        ),
        # An encoder-decoder item counted twice is credited twice.
        BookCase(12, ((x,),), operations("t0 t0 d0 t0 f0"), is_encoder_decoder=True),
        # A budget that is enough and one that is not; room for what was chosen before.
        *(
            BookCase(8, requests, (*start, BookOperation("take", 2, 0, budget, chosen)))
            for start in (operations("t0 t1 d0"), operations("t0 d0"))
            for budget, chosen in ((3, 0), (4, 0), (None, 1), (None, 4), (None, 5))
        ),
        # One hash with two row counts: each may come first.
        BookCase(
            8,
            ((Feature(0, 2, "X"),), (x,)),
            operations("t0 t1 d0 d1 t1 t0 d1 d0"),
            content_is_hashed=False,
        ),
        BookCase(
            8,
            ((x,), (Feature(0, 2, "X"),)),
            operations("t0 t1 d1 d0 t1"),
            content_is_hashed=False,
        ),
    ]


@pytest.fixture(scope="session", name="findings_of")
def findings_of_fixture() -> FindingsOf:
    """:func:`findings_of` for tests, which cannot import this module."""
    return findings_of


@pytest.fixture(scope="session")
def folder_of_this_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this run share, and no other run has."""
    base = tmp_path_factory.getbasetemp()
    # A process of several has a folder in that of the run.
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session", name="drawn")
def drawn_fixture(folder_of_this_run: Path) -> Draws:
    """:func:`drawn` for tests, which cannot import this module."""
    return Draws(folder_of_this_run / "draws")


@pytest.fixture
def cache_of_this_run(folder_of_this_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give commands a cache folder of this run.

    What one test settled about a text is not asked again by another about the same text.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder_of_this_run / "cache"))


@pytest.fixture(scope="session")
def case_pool(drawn: Draws) -> tuple[Case, ...]:
    """A fixed pool: witnesses, directed cases and draws of every strategy."""
    pool = [claim.witness for claim in FUNCTION_CLAIMS.values()] + _directed_cases()
    for strategy, count in (
        (strategies.gather_cases(), 400),
        (strategies.free_cases(), 150),
        (strategies.book_cases(), 300),
        (strategies.book_cases(content_is_hashed=False), 60),
        (strategies.encoder_decoder_book_cases(), 80),
        (strategies.window_cases(), 80),
        (strategies.row_range_cases(), 40),
    ):
        pool += drawn(strategy, count)
    return tuple(dict.fromkeys(pool))


@pytest.fixture(scope="session")
def reference() -> ReferenceTarget:
    """The reference without faults."""
    return ReferenceTarget()
