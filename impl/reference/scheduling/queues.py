"""The waiting queue of either policy."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Iterator

from impl.reference.scheduling.scheduled_request import SchedulerRequest
from spec.record.config import Policy


class WaitingQueue:
    """Requests that wait to run.

    First come first served keeps the order in which they were put in; by priority, the lowest
    number comes first, and of equals the one that arrived first.

    Args:
        policy: which of the two.
    """

    def __init__(self, policy: Policy) -> None:
        self._by_priority = policy == "priority"
        self._requests: deque[SchedulerRequest] = deque()

    @staticmethod
    def order(request: SchedulerRequest) -> tuple[int, int]:
        """Sort key of the priority policy."""
        return request.priority, request.arrival

    def __iter__(self) -> Iterator[SchedulerRequest]:
        return iter(self._requests)

    def __len__(self) -> int:
        return len(self._requests)

    def add(self, request: SchedulerRequest) -> None:
        """Put a new request, or one whose next turn begins, behind the others."""
        if self._by_priority:
            insort(self._requests, request, key=self.order)
        else:
            self._requests.append(request)

    def put_back(self, request: SchedulerRequest) -> None:
        """Put a request that was preempted or skipped before the others."""
        if self._by_priority:
            insort(self._requests, request, key=self.order)
        else:
            self._requests.appendleft(request)

    def pop(self) -> SchedulerRequest:
        """Take the first one."""
        return self._requests.popleft()

    def remove(self, request: SchedulerRequest) -> None:
        """Take one out, wherever it stands."""
        self._requests.remove(request)

    def last_first(self) -> Iterator[SchedulerRequest]:
        """From the last to the first."""
        return reversed(self._requests)
