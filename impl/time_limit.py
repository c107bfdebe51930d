"""An end for code under test that would never end by itself.

What is counted is the time that this process computes, and not that of the clock: a busy machine
makes nothing fail. Code that waits without computing is no matter of this limit, nor is code that
never comes back from a compiled function; the process that waits for a worker ends such a one.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from spec.errors import NoVerdictError

SECONDS_OF_A_RUN = 120.0
"""Computing time of one run of one scenario: thousands of times what one takes."""

SECONDS_OF_AN_IMPORT = 600.0
"""Computing time of one import of a release, which may have to compile all of its modules."""

_SECONDS_BETWEEN_TRIES = 5.0
"""The code under test may catch whatever is raised in it."""


class TimeLimitError(NoVerdictError):
    """Something was ended since it took too long."""


class _LateError(BaseException):
    """Raised in the code under test, which catches its own exceptions."""


_limited: list[str] = []
"""What is being limited; a limit within another one does not count."""


@contextmanager
def time_limit(what: str, seconds: float) -> Iterator[None]:
    """End what runs within when it has computed for too long.

    Only the main thread can be interrupted; in others there is no limit.

    Args:
        what: what runs, for the error.
        seconds: of computing, of all threads of this process together.

    Raises:
        TimeLimitError: it had not ended by then.
    """
    if _limited or threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        if _limited:
            raise _LateError

    before = signal.signal(signal.SIGPROF, interrupt)
    _limited.append(what)
    signal.setitimer(signal.ITIMER_PROF, seconds, _SECONDS_BETWEEN_TRIES)
    try:
        yield
    except _LateError:
        raise TimeLimitError(f"{what}: no end after {seconds:g} s of computing") from None
    finally:
        _limited.clear()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
