"""Search a target in two phases: collect what is violated, then make each violation small.

*Collect* notes every violation under a key, so that none hides another. *Shrink* takes them one by
one. What is drawn, how it is judged and how it gets smaller is given; when to stop, what is kept
and what is said on the way stands here once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from proofs.jobs.progress import ReportProgress

KeyT = TypeVar("KeyT", bound=Hashable)
FoundT = TypeVar("FoundT")

_SHARE_OF_DRAWING = 2 / 3
"""Of the minutes, where something was found that is to be made small in the rest."""


class Limits:
    """When a search ends: after so many draws, when its minutes are over, or when it is asked to.

    Args:
        examples: draws to make, however long they take; ``None`` draws until the minutes are over.
        minutes: for drawing and shrinking together; ``None`` for no limit.
        should_stop: asked before every draw and every try of a reduction.
        began: when the minutes began, on the clock; now by default. Processes share the clock.
        clock: seconds from any start; ``time.monotonic`` by default.
    """

    def __init__(
        self,
        examples: int | None = None,
        minutes: float | None = None,
        should_stop: Callable[[], bool] | None = None,
        began: float | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._examples = examples
        self._should_stop = should_stop or (lambda: False)
        self._clock = clock or time.monotonic
        self._began = self._clock() if began is None else began
        self._seconds = None if minutes is None else 60 * minutes

    def stop_if_asked(self) -> None:
        """End the search where that is asked for.

        Raises:
            KeyboardInterrupt: it is, as if by Ctrl-C.
        """
        if self._should_stop():
            raise KeyboardInterrupt

    def may_draw(self, num_drawn: int, *, has_found: bool) -> bool:
        """Whether to draw once more; what was found needs time to be made small."""
        if self._examples is not None:
            return num_drawn < self._examples
        if self._seconds is None:
            return True
        return self._spent() < self._seconds * (_SHARE_OF_DRAWING if has_found else 1)

    def progress(self, num_drawn: int) -> tuple[int, int]:
        """How much of the drawing is done, and all of it: draws, or seconds where those count."""
        if self._examples is None and self._seconds is not None:
            return int(min(self._spent(), self._seconds)), int(self._seconds)
        return num_drawn, num_drawn if self._examples is None else self._examples

    @property
    def counts_seconds(self) -> bool:
        """Whether it is time that ends the drawing."""
        return self._examples is None and self._seconds is not None

    def share(self, parts: int) -> Callable[[], bool]:
        """Says whether there is time left of one of so many equal parts of the rest."""
        if self._seconds is None:
            return lambda: True
        spent = self._spent()
        end = spent + max(0.0, self._seconds - spent) / parts
        return lambda: self._spent() < end

    def _spent(self) -> float:
        return self._clock() - self._began


@dataclass(frozen=True)
class Ending:
    """How a search ended.

    Attributes:
        interrupted: it was asked to stop.
        not_shrunk: violations whose smallest run was not looked for to the end.
        out_of_time: the minutes were over before everything was made small.
    """

    interrupted: bool
    not_shrunk: int = 0
    out_of_time: bool = False


class Search(Generic[KeyT, FoundT]):
    """The violations of one search, each under its key, in the order in which they came.

    Args:
        limits: when to stop.
        thing: what is made small, for the progress: ``run``, ``case``.
    """

    def __init__(self, limits: Limits, report_progress: ReportProgress | None, thing: str) -> None:
        self.limits = limits
        self.report_progress = report_progress or (lambda *_: None)
        self.found: dict[KeyT, FoundT] = {}
        self._thing = thing

    def run(
        self,
        collect: Callable[[], None],
        shrink: Callable[[KeyT, FoundT, Callable[[], bool]], FoundT],
        name: Callable[[KeyT], str],
    ) -> Ending:
        """Collect, then shrink.

        Args:
            collect: draws, and fills ``found``.
            shrink: the same violation in a smaller case; asks before each try whether there is
                time for one.
            name: what a violation is called, for the progress.
        """
        not_shrunk = 0
        try:
            collect()
            keys = list(self.found)
            not_shrunk = len(keys)
            for index, key in enumerate(keys):
                self.report_progress(f"smallest {self._thing}: {name(key)}", index, len(keys))
                has_time = self.limits.share(len(keys) - index)
                self.found[key] = shrink(key, self.found[key], has_time)
                not_shrunk -= has_time()
            self.report_progress(f"smallest {self._thing}s found", len(keys), len(keys))
        except KeyboardInterrupt:
            return Ending(interrupted=True, not_shrunk=not_shrunk or len(self.found))
        return Ending(False, not_shrunk, out_of_time=not_shrunk > 0)
