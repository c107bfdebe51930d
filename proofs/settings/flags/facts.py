"""Single facts out of arguments: counts, switches and tables, or a message for a person."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from spec.errors import InputError
from spec.record.json_document import json_data

_UNITS = {"k": 10**3, "m": 10**6, "K": 1 << 10, "M": 1 << 20}


def number(text: str | int, name: str) -> int:
    """A count as vLLM reads it: ``8192``, ``8k`` for 8000, ``8K`` for 8192.

    Raises:
        InputError: it is none.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmM]?)", str(text).strip())
    if found is None:
        raise InputError(f"{name}: {text!r} is no count; give one like 8192, 8k or 8K")
    size = float(found[1]) * _UNITS.get(found[2], 1)
    if size != int(size):
        raise InputError(f"{name}: {text!r} is no whole number")
    return int(size)


def required(given: Mapping[str, Any], name: str, what: str) -> int:
    """A count that cannot be done without.

    Raises:
        InputError: it is missing; ``what`` says what it is.
    """
    value = count(given, name)
    if value is None:
        raise InputError(f"missing {what}")
    return value


def count(given: Mapping[str, Any], name: str) -> int | None:
    """A count, if it is given."""
    value = given.get(name)
    return None if value is None else number(value, name)


def flag(given: Mapping[str, Any], name: str, *, default: bool) -> bool:
    """A switch."""
    value = given.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise InputError(f"{name}: {value!r} is neither true nor false")
    return value


def table(given: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """A JSON object, if it is given.

    Raises:
        InputError: it is none.
    """
    value = given.get(name)
    if value is None or isinstance(value, dict):
        return value
    is_table = isinstance(value, str) and value.lstrip().startswith("{")
    data = json_data(value, name) if is_table else None
    if not isinstance(data, dict):
        raise InputError(f"{name}: {value!r} is no JSON object")
    return data
