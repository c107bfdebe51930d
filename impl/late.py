"""torch, imported when something of it is first asked for: importing it takes seconds."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch as torch
else:

    class _Torch:
        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module("torch"), name)
            # What was asked for once is found here, as quickly as in the module.
            setattr(self, name, value)
            return value

    torch = _Torch()
