"""Keep the calls that a scheduler makes to its book and to its KV manager.

Methods are wrapped on the instance and answer themselves. A wrapper takes every call that the
method takes, by position or by name. What a method calls in turn on its own object is part of the
one call that the scheduler made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from impl.target import AdapterError
from spec.record.quick import quick
from spec.record.steps import Call, Method

_call = quick(Call)
_NO_CALLS: tuple[Call, ...] = ()
_ABSENT = object()

Positional: TypeAlias = tuple[Any, ...]
Named: TypeAlias = Mapping[str, Any]
WRAPPER = "recorded"
"""Name of every wrapper's function: what is raised there was raised by the call that it took."""

Argument: TypeAlias = Callable[[Positional, Named], Any]
"""Finds one argument of a call."""


class CallLog:
    """Calls, and turns that began, since they were last taken.

    Args:
        indices: index of each request, by id.

    Attributes:
        continued: requests whose next turn began, with its first position (tokens).
    """

    def __init__(self, indices: Mapping[str, int]) -> None:
        self.indices = indices
        self.calls: list[Call] = []
        self.continued: list[tuple[int, int]] = []

    def take(self) -> tuple[Call, ...]:
        """All calls so far, once."""
        if not self.calls:
            return _NO_CALLS
        calls = tuple(self.calls)
        self.calls.clear()
        return calls

    def take_continued(self) -> tuple[tuple[int, int], ...]:
        """All turns that began, once."""
        if not self.continued:
            return ()
        continued = tuple(self.continued)
        self.continued.clear()
        return continued


def argument(method: Callable[..., Any], name: str, place: int, default: Any = _ABSENT) -> Argument:
    """How to find an argument in any call that a method takes.

    Args:
        method: a bound method.
        place: its place where the method has no parameter of that name.
        default: what it is where a call leaves it out and the method has no default of its own.
    """
    parameters = list(inspect.signature(method).parameters.values())
    names = [parameter.name for parameter in parameters]
    by_position = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
    if name in names:
        place = names.index(name)
    elif place < len(parameters) and parameters[place].kind in by_position:
        name = names[place]
    if name in names:
        own_default = parameters[place].default
        default = default if own_default is inspect.Parameter.empty else own_default
        if parameters[place].kind is inspect.Parameter.KEYWORD_ONLY:
            place = len(names)  # No position reaches it.

    def find(args: Positional, kwargs: Named) -> Any:
        value = args[place] if place < len(args) else kwargs.get(name, default)
        if value is _ABSENT:
            raise AdapterError(f"a call of {method.__qualname__} gives no {name}")
        return value

    return find


def wrap(owner: object, name: str, note: Callable[[Any, Positional, Named], None]) -> None:
    """Let every call of a method be noted once it has answered.

    Args:
        owner: the object that has the method; it must take attributes.
        note: told of the answer and of the arguments, by position and by name.
    """
    method: Callable[..., Any] = getattr(owner, name)

    def recorded(*args: Any, **kwargs: Any) -> Any:
        answer = method(*args, **kwargs)
        note(answer, args, kwargs)
        return answer

    setattr(owner, name, recorded)


WITH_FEATURE: tuple[Method, ...] = (
    "check_and_update_cache",
    "allocate",
    "free_encoder_input",
    "cancel",
)
_OPTIONAL: tuple[Method, ...] = ("cancel",)
"""Methods that only some books have."""


def record_book(book: object, log: CallLog) -> None:
    """Keep the calls to a book from now on.

    Raises:
        AdapterError: the book lacks a method that is to be recorded.
    """
    for name in WITH_FEATURE:
        if name in _OPTIONAL and not hasattr(book, name):
            continue
        _record(book, name, log, has_feature=True)
    _record(book, "free", log, has_feature=False)
    _record_room(book, log)
    _wrap_outermost(book, "reset", log, lambda answer, args, kwargs: _call("reset"))


def _record(book: object, name: Method, log: CallLog, *, has_feature: bool) -> None:
    method = _method(book, name)
    request_of, feature_of = argument(method, "request", 0), argument(method, "input_id", 1)
    indices = log.indices

    def with_feature(answer: Any, args: Positional, kwargs: Named) -> Call:
        index = indices[request_of(args, kwargs).request_id]
        return _call(name, index, feature_of(args, kwargs), answer)

    def of_request(answer: Any, args: Positional, kwargs: Named) -> Call:
        return _call(name, indices[request_of(args, kwargs).request_id])

    _wrap_outermost(book, name, log, with_feature if has_feature else of_request)


def _record_room(book: object, log: CallLog) -> None:
    method = _method(book, "can_allocate")
    request_of, feature_of = argument(method, "request", 0), argument(method, "input_id", 1)
    budget_of = argument(method, "encoder_compute_budget", 2)
    chosen_of = argument(method, "num_embeds_to_schedule", 3)
    indices = log.indices

    def asked(answer: Any, args: Positional, kwargs: Named) -> Call:
        return _call(
            "can_allocate",
            indices[request_of(args, kwargs).request_id],
            feature_of(args, kwargs),
            answer,
            budget_of(args, kwargs),
            chosen_of(args, kwargs),
        )

    _wrap_outermost(book, "can_allocate", log, asked)


def _wrap_outermost(
    owner: object, name: str, log: CallLog, call_of: Callable[[Any, Positional, Named], Call]
) -> None:
    """Record a method's calls; those that it makes itself are part of its own."""
    method, calls = _method(owner, name), log.calls

    def recorded(*args: Any, **kwargs: Any) -> Any:
        before = len(calls)
        answer = method(*args, **kwargs)
        if len(calls) > before:
            del calls[before:]
        calls.append(call_of(answer, args, kwargs))
        return answer

    setattr(owner, name, recorded)


def record_rejections(owner: object, name: str, log: CallLog) -> None:
    """Keep a question whether an entry has other rows, where the answer is yes.

    It is kept as a question for the entry that found no answer.
    """
    method = _method(owner, name)
    request_of, feature_of = argument(method, "request", 0), argument(method, "input_id", 1)

    def note(rejected: Any, args: Positional, kwargs: Named) -> None:
        if rejected:
            index = log.indices[request_of(args, kwargs).request_id]
            log.calls.append(_call("check_and_update_cache", index, feature_of(args, kwargs)))

    wrap(owner, name, note)


def record_slots(
    kv_blocks: object, log: CallLog, *, counted: str, beside: tuple[tuple[str, int], ...] = ()
) -> None:
    """Keep what a KV manager is asked for: room for so many tokens of a request.

    Args:
        kv_blocks: has ``allocate_slots``, which answers with blocks or true where there is room.
        counted: the parameter that says for how many tokens.
        beside: where that counts only tokens past the request's progress: further parameters, each
            with its place, whose tokens lie between, 0 where a call leaves one out.
    """
    method = _method(kv_blocks, "allocate_slots")
    request_of, counted_of = argument(method, "request", 0), argument(method, counted, 1)
    between = [argument(method, name, place, 0) for name, place in beside]

    def tokens_of(args: Positional, kwargs: Named) -> int:
        tokens: int = counted_of(args, kwargs)
        if between:
            tokens += request_of(args, kwargs).num_computed_tokens
            tokens += sum([of(args, kwargs) for of in between])
        return tokens

    def note(answer: Any, tokens: int, args: Positional, kwargs: Named) -> None:
        fits = answer is not None and answer is not False
        index = log.indices[request_of(args, kwargs).request_id]
        log.calls.append(_call("allocate_slots", index, -1, fits, tokens))

    def recorded(*args: Any, **kwargs: Any) -> Any:
        tokens = tokens_of(args, kwargs)  # Before: progress moves with the answer.
        answer = method(*args, **kwargs)
        note(answer, tokens, args, kwargs)
        return answer

    kv_blocks.allocate_slots = recorded  # type: ignore[attr-defined]


def _method(owner: object, name: str) -> Callable[..., Any]:
    method = getattr(owner, name, None)
    if not callable(method):
        raise AdapterError(f"{type(owner).__name__} has no method {name}, which is to be recorded")
    found: Callable[..., Any] = method
    return found
