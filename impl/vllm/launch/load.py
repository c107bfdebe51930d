"""Import the real modules of one vLLM on CPU, without an accelerator and without building it.

A process holds one vLLM: a second one would mix two releases' modules.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import torch

from impl.target import Part
from impl.time_limit import SECONDS_OF_AN_IMPORT, TimeLimitError, time_limit
from impl.vllm.launch.imports import PackageFinder
from impl.vllm.launch.source import PACKAGE, Source
from spec.errors import InputError, described, message_of


@dataclass(frozen=True)
class Patch:
    """Something that is not as the release has it, why that is so, and the parts it concerns."""

    where: str
    change: str
    reason: str
    parts: tuple[Part | Literal["loop"], ...]


_GATHERS: tuple[Part, ...] = ("V1", "V2")
_REQUESTS: tuple[Part, ...] = ("free", "book", "encoder_decoder_book")

PATCHES: tuple[Patch, ...] = (
    Patch(
        "every loaded vllm module",
        "PIN_MEMORY is False where no CUDA device is present",
        "it is True on an unspecified platform, and pinned memory needs an accelerator",
        _GATHERS,
    ),
    Patch(
        "GPUModelRunner (V1)",
        "made without its constructor; the attributes that _gather_mm_embeddings reads are set by "
        "hand: requests, input_batch, encoder_cache, no pruning, no M-RoPE",
        "its constructor allocates device buffers and needs a model; the release's own tests call "
        "the method on a stand-in as well",
        ("V1",),
    ),
    Patch(
        "EncoderRunner (V2)",
        "made with no model",
        "gather_mm_embeddings does not use the model",
        ("V2",),
    ),
    Patch(
        "Scheduler",
        "made without its constructor; the attributes that _free_encoder_inputs reads are set by "
        "hand: the book, encoder-decoder or not, the drafter's look-ahead, no external cache",
        "its constructor needs a whole engine configuration",
        ("free",),
    ),
    Patch(
        "the book's free_encoder_input",
        "wrapped on the instance, to note which features are let go; the book's own method answers",
        "what *free* lets go, and in which order, is seen nowhere else",
        ("free",),
    ),
    Patch(
        "Request",
        "made with a prompt of zeros that ends where its last feature does, and without the "
        "features' data",
        "no function under test reads token ids or data",
        _REQUESTS,
    ),
    Patch(
        "the compiled extension vllm._C",
        "absent",
        "nothing is built; no function under test uses it",
        (*_GATHERS, *_REQUESTS, "window", "row_range", "loop"),
    ),
    Patch(
        "VllmConfig",
        "built for a small text model on the CPU, whose class is ours; a drafter is configured as "
        "ngram and renamed to eagle, or to draft_model where only the gathers read ahead; "
        "asynchronous scheduling is switched on, after the checks at start-up",
        "a multimodal model and a drafter with a forward pass need weights and an accelerator",
        ("loop",),
    ),
    Patch(
        "Scheduler and AsyncScheduler",
        "made by their constructors; then set by hand: encoder_cache_manager with its size, "
        "max_num_encoder_input_tokens, is_encoder_decoder, use_v2_model_runner and, where the "
        "release has it, can_skip_drafts; for shifts above 1 num_prefill_lookahead and the KV "
        "manager's num_reprefillable_tokens; for block alignment need_mamba_block_aligned_split "
        "and the block_size of its cache configuration",
        "they are derived from a multimodal, hybrid or encoder-decoder model",
        ("loop",),
    ),
    Patch(
        "the scheduler's and the cache's configuration",
        "set for each scenario after the checks at start-up: max_num_batched_tokens, "
        "max_num_scheduled_tokens, max_num_seqs, disable_chunked_mm_input, "
        "long_prefill_token_threshold, policy, num_gpu_blocks and block_size; watermark is 0",
        "building a VllmConfig for each scenario takes seconds; keeping a share of the blocks free "
        "is no setting of a scenario",
        ("loop",),
    ),
    Patch(
        "methods of the book, the KV manager and the scheduler",
        "wrapped on the instance, the release's own method answers: check_and_update_cache, "
        "can_allocate, allocate, free_encoder_input, free and reset of the book, allocate_slots of "
        "the KV manager, _reject_on_encoder_cache_embed_mismatch and _update_request_as_session of "
        "the scheduler",
        "the calls are recorded, since claims are about what was asked for and answered",
        ("loop",),
    ),
    Patch(
        "the model runners",
        "GPUModelRunner (V1) is made without its constructor and EncoderRunner (V2) with no model; "
        "our worker calls their choice of inputs and their gathers, in the order read from the "
        "source; the encoder is ours",
        "their constructors allocate device buffers and need a model",
        ("loop",),
    ),
    Patch(
        "the KV connector",
        "a class of ours on the release's base class, made by its own factory, that finds prefixes "
        "and loads them within a step",
        "prefix hits and failed loads are the scenario's to choose",
        ("loop",),
    ),
    Patch(
        "the manager of grammars",
        "a stand-in that accepts every token",
        "no request of a scenario has a grammar",
        ("loop",),
    ),
    Patch(
        "max_model_len",
        "set to the tokens that the KV blocks hold, of the model and of the scheduler",
        "an engine refuses to start where the blocks do not hold one request of that length",
        ("loop",),
    ),
)
"""Every difference from an installed release, for reports."""


def patches_for(part: str) -> tuple[Patch, ...]:
    """The patches that concern a part, or one of the parts that a longer name is made of."""
    words = re.split(r"[ ,]+", part)
    return tuple(patch for patch in PATCHES if any(word in patch.parts for word in words))


_QUIET_AND_OFFLINE = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
}
"""Environment of a process that imports vLLM: nothing is printed, nothing is sent or fetched."""


@dataclass(frozen=True)
class Loaded:
    """One vLLM in this process."""

    source: Source

    def find(self, module: str, attribute: str) -> Any | None:
        """An attribute of one of its modules, or ``None`` where the release has no such thing.

        Args:
            module: name below ``vllm``, such as ``v1.request``.
            attribute: a class or function of the module.

        Raises:
            InputError: a distribution that the module needs is not installed.
        """
        name = f"{PACKAGE}.{module}"
        found = _import(name)
        return None if found is None else getattr(found, attribute, None)

    def module(self, module: str) -> ModuleType:
        """One of its modules.

        Args:
            module: name below ``vllm``, such as ``v1.request``.

        Raises:
            InputError: the release has no such module, or a distribution that it needs is missing.
        """
        found = _import(f"{PACKAGE}.{module}")
        if found is None:
            raise InputError(f"{self.source.name} has no module {PACKAGE}.{module}")
        return found

    def named_class(self, name: str) -> Any:
        """A class that is named in full, of vLLM or of a package beside it.

        Args:
            name: ``package.module:Class``.

        Raises:
            InputError: there is no such module or class.
        """
        module, _, attribute = name.partition(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError, ValueError) as error:
            raise InputError(
                f"{name}: no such class ({message_of(error)}); give package.module:Class, "
                "importable from here"
            ) from None


_loaded: list[Loaded] = []


def load(source: Source) -> Loaded:
    """Import the package of a source, and let nothing else that lies beside it be imported.

    Raises:
        InputError: this process holds another vLLM already, or a dependency is missing.
    """
    if _loaded:
        present = _loaded[0]
        if present.source != source:
            raise InputError(
                f"this process has loaded {present.source.name} from {present.source.root}; load "
                f"{source.name} in a process of its own"
            )
        return present
    _require_no_other(source)
    for name, value in _QUIET_AND_OFFLINE.items():
        os.environ.setdefault(name, value)
    finder = PackageFinder(source.root)
    sys.meta_path.insert(0, finder)
    if _import(PACKAGE) is None:
        sys.meta_path.remove(finder)
        raise InputError(f"{source.root}: holds no package {PACKAGE}")
    loaded = Loaded(source)
    _loaded.append(loaded)
    return loaded


def _require_no_other(source: Source) -> None:
    imported = sys.modules.get(PACKAGE)
    if imported is not None:
        where = Path(imported.__file__ or "").parent.parent
        raise InputError(
            f"this process has already imported {PACKAGE} from {where}; load {source.name} in a "
            "process of its own"
        )


def _import(name: str) -> ModuleType | None:
    """Import a module of vLLM and switch pinned memory off; ``None`` when there is no such."""
    at_rest = nullcontext() if name in sys.modules else _collector_at_rest()
    logging.getLogger(PACKAGE).setLevel(logging.ERROR)
    try:
        limit = time_limit(f"import of {name}", SECONDS_OF_AN_IMPORT)
        with warnings.catch_warnings(), limit, at_rest:
            warnings.simplefilter("ignore")
            module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing == name or name.startswith(f"{missing}."):
            return None
        raise InputError(
            f"{name} needs the module {missing}, which is not installed; run `make vllm`, which "
            "installs what the releases from 0.17 to 0.33 need, and install whatever another one "
            "needs yourself"
        ) from None
    except TimeLimitError:
        raise
    except Exception as error:
        raise InputError(
            f"{name} cannot be imported: {described(error)}; run `make vllm`; if that "
            "does not help, this vLLM needs other versions of its dependencies than are installed"
        ) from error
    if not torch.cuda.is_available():
        _switch_pinned_memory_off()
    return module


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Import without the collector, and have it pass over what was imported.

    All of it stays. To look at a million objects again and again takes a third of the import, and a
    fifth of a search.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        # Libraries tell of what is not taken down at the end.
        atexit.unregister(gc.unfreeze)
        atexit.register(gc.unfreeze)
        if was_enabled:
            gc.enable()


def _switch_pinned_memory_off() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{PACKAGE}.") and getattr(module, "PIN_MEMORY", False) is True:
            module.PIN_MEMORY = False  # type: ignore[attr-defined]
