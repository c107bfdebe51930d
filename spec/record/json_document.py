"""What all versioned JSON files of the project share: reading with errors for people, schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from spec.errors import InputError, message_of

T = TypeVar("T")

_UNKNOWN_FIELD = ("extra_forbidden", "unexpected_keyword_argument")
"""Pydantic's names for a field that nobody knows."""


def published_schema(adapter: TypeAdapter[Any], title: str) -> dict[str, Any]:
    """The JSON schema of what the adapter reads."""
    schema = adapter.json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = title
    return schema


def parse(text: str, adapter: TypeAdapter[T], version: int, where: str, what: str = "trace") -> T:
    """Read a document's text.

    Args:
        text: the JSON text.
        adapter: reads and checks the document's structure.
        version: the schema version that the adapter reads.
        where: the file's name, for error messages.
        what: what the file should hold, for error messages.

    Raises:
        InputError: not JSON, another version, an unknown or missing field, or a value of another
            type.
    """
    raw = json_data(text, where)
    if not isinstance(raw, dict) or "schema" not in raw:
        hint = ""
        if isinstance(raw, dict) and "vars" in raw and "states" in raw:
            hint = (
                "; it looks like an ITF trace, which other tools read and this program only writes"
            )
        raise InputError(f'{where}: not a {what}: it has no "schema"{hint}')
    found = raw["schema"]
    if found != version:
        raise InputError(f"{where}: schema version {found!r}; this program reads version {version}")
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        first = first_error(error, raw.get("kind"))
        raise InputError(f"{where}: {first}") from None


def json_data(text: str, where: str) -> Any:
    """The data of a JSON text in which no object has a key twice.

    Readers differ in which of two equal keys they take, so that a file could say one thing to a
    person and another to this program.

    Raises:
        InputError: not JSON, nested too deep, or a key that stands twice.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{where}: not JSON (line {error.lineno}, column {error.colno}: {error.msg})"
        ) from None
    except RecursionError:
        raise InputError(f"{where}: nested too deep to be read") from None
    except ValueError as error:  # A number of more digits than Python takes.
        raise InputError(f"{where}: cannot be read ({message_of(error)})") from None
    except _RepeatedKeyError as error:
        raise InputError(f"{where}: the key {error.args[0]!r} stands twice in one object") from None


class _RepeatedKeyError(Exception):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in pairs:
        if key in data:
            raise _RepeatedKeyError(key)
        data[key] = value
    return data


def first_error(error: ValidationError, kind: object = None) -> str:
    """The error that says most: a key nobody knows explains why another one is missing.

    Args:
        kind: what chose the schema, and stands first in the path; ``None`` where nothing did.
    """
    errors = error.errors()
    first = next((e for e in errors if e["type"] in _UNKNOWN_FIELD), errors[0])
    # Where the kind chooses what is read, the path begins with it.
    path = first["loc"][1:] if first["loc"][:1] == (kind,) else first["loc"]
    place = ".".join(str(part) for part in path) or "the document"
    message = first["msg"]
    if first["type"] in _UNKNOWN_FIELD:
        message = "unknown field"
    elif first["type"] != "missing" and isinstance(first["input"], str | int | float | None):
        message += f", not {first['input']!r}"
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{place}: {message}{more}"


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: cannot be read: it holds no UTF-8 text") from None
