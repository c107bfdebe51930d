"""What a question reads of a release: the functions, classes and names that its run comes to.

Two releases that are the same wherever a question reads give it the same answer. Only definitions
are compared, without comments and line numbers, of which a run sees nothing.
"""

from __future__ import annotations

from typing import TypeAlias

Read: TypeAlias = tuple[str, ...]
"""What was looked up: ``module`` and its name, ``name`` and the module and the name in it,
``definition`` and the module, the class (empty for none) and the function, or ``calls`` and the
same with the method that is called."""


_NUM_NAMES = {"module": 0, "name": 1, "definition": 2, "calls": 3}
"""By kind, the names behind the module's."""


def is_possible(read: Read) -> bool:
    """Whether something can have been looked up, so that it can be looked up in another release."""
    if len(read) < 2 or len(read) - 2 != _NUM_NAMES.get(read[0]):
        return False
    module, *names = read[1:]
    named = (*module.split("."), *(name for name in names if name))
    return module.startswith("vllm.") and all(name.isidentifier() for name in named)


class Reads:
    """Everything that was looked up, once each, in the order of the first look."""

    def __init__(self) -> None:
        self._seen: dict[Read, None] = {}

    def add(self, *read: str) -> None:
        """Note that something was looked up, whether or not it was there."""
        self._seen[read] = None

    @property
    def listed(self) -> tuple[Read, ...]:
        """All that was looked up."""
        return tuple(self._seen)
