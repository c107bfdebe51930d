"""What all versioned JSON files of the project share: reading with errors for people, schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from spec.errors import InputError

T = TypeVar("T")


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
    try:
        raw = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{where}: not JSON (line {error.lineno}, column {error.colno}: {error.msg})"
        ) from None
    except (RecursionError, ValueError) as error:
        raise InputError(f"{where}: not a {what} ({error})") from None
    found = raw.get("schema") if isinstance(raw, dict) else None
    if found != version:
        raise InputError(f"{where}: schema version {found!r}; this program reads version {version}")
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the document"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise InputError(f"{where}: {place}: {first['msg']}{more}") from None


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
