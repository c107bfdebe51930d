"""Import the real modules of one vLLM on CPU, without an accelerator and without building it.

A process holds one vLLM: a second one would mix two releases' modules.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from impl.target import Part
from impl.vllm.source import PACKAGE, Source
from spec.errors import InputError


@dataclass(frozen=True)
class Patch:
    """Something that is not as the release has it, why that is so, and the parts it concerns."""

    where: str
    change: str
    reason: str
    parts: tuple[Part, ...]


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
        (*_GATHERS, *_REQUESTS, "window", "row_range"),
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


_loaded: list[Loaded] = []


def load(source: Source) -> Loaded:
    """Put a source on ``sys.path`` and import its package.

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
    sys.path.insert(0, str(source.root))
    if _import(PACKAGE) is None:
        sys.path.remove(str(source.root))
        raise InputError(f"{source.root}: holds no package {PACKAGE}")
    loaded = Loaded(source)
    _loaded.append(loaded)
    return loaded


def _require_no_other(source: Source) -> None:
    other = sys.modules.get(PACKAGE)
    if other is not None:
        where = Path(other.__file__ or "").parent.parent
        raise InputError(
            f"this process has already imported {PACKAGE} from {where}; load {source.name} in a "
            "process of its own"
        )


def _import(name: str) -> ModuleType | None:
    """Import a module of vLLM and switch pinned memory off; ``None`` when there is no such."""
    logging.getLogger(PACKAGE).setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
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
    except Exception as error:
        raise InputError(
            f"{name} cannot be imported: {type(error).__name__}: {error}; run `make vllm`; if that "
            "does not help, this vLLM needs other versions of its dependencies than are installed"
        ) from error
    if not torch.cuda.is_available():
        _switch_pinned_memory_off()
    return module


def _switch_pinned_memory_off() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{PACKAGE}.") and getattr(module, "PIN_MEMORY", False) is True:
            module.PIN_MEMORY = False  # type: ignore[attr-defined]
