"""A real vLLM in the closed loop: its scheduler, its book and its gathers, with our worker."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from impl.target import AdapterError, Runner
from impl.tensors import TensorSettings
from impl.vllm.functions.objects import Builder, UnavailableError, require
from impl.vllm.functions.target import VllmTarget
from impl.vllm.launch.load import Loaded, load
from impl.vllm.launch.source import Source
from impl.vllm.launch.worker_order import WorkerOrder, worker_order
from impl.vllm.runs.config import Schedulers
from impl.vllm.runs.engine import VllmEngine
from impl.vllm.runs.requests import RequestBuilder
from impl.vllm.runs.results import Results
from impl.vllm.runs.rows import NumberedRows, TensorRows
from impl.vllm.runs.runners import LoopGatherV1, LoopGatherV2, make_loop_gather
from impl.vllm.runs.worker import Worker
from spec.errors import InputError, described
from spec.record.config import EngineConfig
from spec.record.feature import Feature
from spec.record.scenario import Scenario, ScenarioRequest
from spec.record.steps import Step

_PROBE = Scenario(
    EngineConfig(
        max_num_batched_tokens=8, encoder_compute_budget=8, encoder_cache_size=8, num_kv_blocks=16
    ),
    (ScenarioRequest(4, (Feature(1, 2, "A"),)),),
)
"""One item, all of it resident when it is read."""

_PROBE_CALLS = {"can_allocate", "allocate", "allocate_slots", "check_and_update_cache", "free"}
"""Calls without which no release has run it to its end."""


class VllmLoop:
    """A release as a :class:`impl.target.LoopTarget`.

    The gathers are the release's own in every run; without tensor settings they gather small
    tensors of numbers, and nothing is merged.

    Args:
        source: a release or a directory.
        scheduler_class: ``package.module:Class`` to use in place of the release's schedulers.

    Raises:
        InputError: the process holds another vLLM, or a dependency or a class is missing.
    """

    def __init__(self, source: Source, *, scheduler_class: str | None = None) -> None:
        self._loaded: Loaded = load(source)
        self._functions = VllmTarget(source)
        self._scheduler_class = scheduler_class
        self._tried: set[Runner] = set()
        self._runners: dict[Runner, tuple[LoopGatherV1 | LoopGatherV2, WorkerOrder] | str] = {}

    @property
    def name(self) -> str:
        """``vllm`` and the release, or the directory."""
        return self._loaded.source.name

    @property
    def source(self) -> Source:
        """Where the code under test lies."""
        return self._loaded.source

    @cached_property
    def _schedulers(self) -> Schedulers | str:
        try:
            return Schedulers(self._loaded, self._scheduler_class)
        except UnavailableError as error:
            return str(error)

    @cached_property
    def _builder(self) -> Builder:
        return Builder(self._loaded)

    @cached_property
    def _requests(self) -> RequestBuilder:
        return RequestBuilder(self._loaded, self._builder)

    @cached_property
    def _results(self) -> Results:
        return Results(self._loaded)

    @cached_property
    def _merge(self) -> Any:
        return require(self._loaded, "model_executor.models.utils", "_merge_multimodal_embeddings")

    def worker_order(self, runner: Runner) -> WorkerOrder | str:
        """What the runner does in a step, or why its source is not recognised."""
        return worker_order(self.source, runner)

    def missing(self, scenario: Scenario, runner: Runner) -> str | None:
        """Why the release cannot run the scenario, or ``None`` when it can."""
        found = self._runner(runner)
        if isinstance(found, str):
            return found
        if isinstance(self._schedulers, str):
            return self._schedulers
        _, order = found
        config = scenario.config
        if config.gather_lookahead not in (0, order.look_ahead):
            return (
                f"{runner} reads {order.look_ahead} ahead for its drafter, not "
                f"{config.gather_lookahead}"
            )
        schedulers = self._schedulers
        reason = schedulers.missing(config) or self._requests.missing(
            scenario, lambda: schedulers.example
        )
        return reason or _missing_answers(scenario)

    def _runner(self, runner: Runner) -> tuple[LoopGatherV1 | LoopGatherV2, WorkerOrder] | str:
        if runner not in self._runners:
            self._runners[runner] = self._find_runner(runner)
        return self._runners[runner]

    def _find_runner(self, runner: Runner) -> tuple[LoopGatherV1 | LoopGatherV2, WorkerOrder] | str:
        reason = self._functions.missing(runner)
        if reason is not None:
            return reason
        order = worker_order(self.source, runner)
        if isinstance(order, str):
            return f"the order of {runner}'s worker is not recognised: {order}"
        try:
            return make_loop_gather(runner, self._loaded, self._builder), order
        except UnavailableError as error:
            return str(error)

    def _require_fit(self, runner: Runner) -> None:
        """Run one item once, before the runner may be judged.

        Raises:
            AdapterError: nothing went wrong, and yet its calls or its rows were not seen.
        """
        if runner in self._tried:
            return
        self._tried.add(runner)
        steps = list(self._engine(_PROBE, runner, None, record=True).steps())
        if any(step.error is not None for step in steps):
            return
        calls = {call.method for step in steps for call in step.calls}
        unseen = sorted(_PROBE_CALLS - calls)
        reads = [step.worker.target for step in steps if step.kind == "pass" and step.worker]
        if not unseen and not any(read.error for read in reads) and not any(r.rows for r in reads):
            unseen = ["the rows of a resident item"]
        if unseen:
            self._tried.discard(runner)
            raise AdapterError(
                f"in a run of one item on {runner} these were never seen: {', '.join(unseen)}; how "
                "this vLLM is driven here does not fit it"
            )

    def engine(
        self,
        scenario: Scenario,
        runner: Runner,
        tensors: TensorSettings | None = None,
        *,
        record: bool = True,
    ) -> VllmEngine:
        """A new engine for a scenario.

        Raises:
            InputError: the scenario is not valid, or the release cannot run it.
            AdapterError: our way of driving the release does not fit it.
        """
        scenario.validate()
        reason = self.missing(scenario, runner)
        if reason is not None:
            raise InputError(f"{self.name} cannot run the scenario on {runner}: {reason}")
        self._require_fit(runner)
        return self._engine(scenario, runner, tensors, record=record)

    def _engine(
        self, scenario: Scenario, runner: Runner, tensors: TensorSettings | None, *, record: bool
    ) -> VllmEngine:
        gather, order = self._known_runner(runner)
        rows = NumberedRows() if tensors is None else TensorRows(tensors, self._merge)
        config = scenario.config
        store = gather.store(rows.settings, config.max_num_batched_tokens)
        has_store = any(r.prefix_hits or r.failed_loads for r in scenario.requests)
        if isinstance(self._schedulers, str):
            raise InputError(self._schedulers)
        scheduler = self._schedulers.make(config, runner, has_store=has_store)
        worker = Worker(scenario, store, rows, order.duties)
        return VllmEngine(scenario, scheduler, worker, self._requests, self._results, record=record)

    def _known_runner(self, runner: Runner) -> tuple[LoopGatherV1 | LoopGatherV2, WorkerOrder]:
        found = self._runner(runner)
        if isinstance(found, str):
            raise InputError(found)
        return found

    def run(
        self, scenario: Scenario, runner: Runner, tensors: TensorSettings | None = None
    ) -> Iterator[Step]:
        """See :class:`impl.target.LoopTarget`.

        Raises:
            InputError: as :meth:`engine`.
        """
        yield from self.engine(scenario, runner, tensors).steps()


def require_scheduler(source: Source, name: str) -> None:
    """Check that a class is a scheduler.

    Args:
        source: the vLLM whose scheduler it is to replace.
        name: ``package.module:Class``.

    Raises:
        InputError: it is none, or cannot be imported.
    """
    try:
        found = load(source).named_class(name)
    except InputError:
        raise
    except Exception as error:  # Whatever a module of someone else's raises on its import.
        raise InputError(f"{name}: cannot be imported: {described(error)}") from None
    methods = ("schedule", "update_from_output", "add_request", "finish_requests")
    missing = [method for method in methods if not callable(getattr(found, method, None))]
    if not isinstance(found, type) or missing:
        what = f"has no method {missing[0]}" if missing else "is no class"
        raise InputError(f"{name}: it {what}; name a subclass of vLLM's Scheduler")


def _missing_answers(scenario: Scenario) -> str | None:
    """Answers of the world that no real store of KV gives."""
    block_size = scenario.config.block_size
    for request in scenario.requests:
        if any(hit % block_size for hit in request.prefix_hits):
            return f"a prefix that is found is a whole number of blocks of {block_size} tokens"
        if any(load.num_computed_tokens % block_size for load in request.failed_loads):
            return f"a load fails by whole blocks of {block_size} tokens"
    return None
