"""Cases and findings as versioned JSON with a published schema.

The schema is ``spec/schema/trace-v1.json``, generated from the dataclasses; a test holds the two
equal. Later traces extend the ``kind`` tag; readers refuse versions that they do not know.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from glob import escape
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from spec.errors import InputError
from spec.functions.cases import Case
from spec.functions.findings import Finding
from spec.record.json_document import parse, published_schema, read_text

SCHEMA_VERSION = 1
SCHEMA_FILE = Path(__file__).parents[1] / "record" / "schema" / "trace-v1.json"


@dataclass(frozen=True)
class Document:
    """What a case file holds: one case, and the findings that were made on it."""

    schema: int
    kind: Literal["function-case"]
    case: Annotated[Case, Field(discriminator="kind")]
    findings: tuple[Finding, ...] = ()

    __pydantic_config__ = {"extra": "forbid", "strict": True}


@cache
def _documents() -> TypeAdapter[Document]:
    return TypeAdapter(Document)


@cache
def _findings() -> TypeAdapter[Finding]:
    return TypeAdapter(Finding)


def json_schema() -> dict[str, Any]:
    """The JSON schema of a trace file."""
    return published_schema(_documents(), f"residency trace, version {SCHEMA_VERSION}")


def finding_to_json(finding: Finding) -> dict[str, Any]:
    """A finding as plain JSON data."""
    data: dict[str, Any] = _findings().dump_python(finding, mode="json")
    return data


def dumps(case: Case, findings: tuple[Finding, ...] = ()) -> str:
    """A case and its findings as the text of a trace file."""
    document = Document(SCHEMA_VERSION, "function-case", case, findings)
    return _documents().dump_json(document, indent=2).decode() + "\n"


def loads(text: str, where: str = "trace") -> Document:
    """Read a trace file's text and check the case's own rules.

    Args:
        text: the JSON text.
        where: the file's name, for error messages.

    Raises:
        InputError: not JSON, another version, an unknown or missing field, or an impossible case.
    """
    document = parse(text, _documents(), SCHEMA_VERSION, where)
    try:
        document.case.validate()
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return document


def load(path: Path) -> Document:
    """Read a trace file.

    Raises:
        InputError: the file cannot be read or is not a valid trace.
    """
    return loads(read_text(path), str(path))


def require_writable(path: Path) -> None:
    """Check, before any work is done, that a file or folder can be made at the path.

    Raises:
        InputError: the folder it is to be in is missing or cannot be written to.
    """
    folder = path.absolute().parent
    try:
        if not folder.is_dir():
            raise InputError(
                f"{path}: cannot be written, there is no folder {folder}; make it, or mend the path"
            )
        if path.exists() and not path.is_dir() and not path.is_file():
            return  # A device or a pipe is written to as it is.
        # Permissions do not tell all: only a file that was made shows that one can be made.
        place = path if path.is_dir() else folder
        handle, name = tempfile.mkstemp(dir=place, prefix=f".{path.name}.")
        os.close(handle)
        Path(name).unlink()
    except OSError as error:
        what = "written" if os.path.exists(path) else "created"  # noqa: PTH110 -- raises for no name
        raise InputError(
            f"{path}: cannot be {what} ({error.strerror}); choose a folder that you may write to"
        ) from None


def write_atomically(path: Path, text: str) -> None:
    """Write a text file under a temporary name and move it into place.

    Raises:
        InputError: the folder is missing or cannot be written.
    """
    path = path.resolve()
    try:
        if path.exists() and not path.is_file():
            # A device or a pipe is written to; a file in its place would destroy it.
            path.write_text(text, encoding="utf-8")
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        prefix = f".{path.name}.{os.getpid()}."
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=prefix)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            temporary.chmod(0o644)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


def _sweep(path: Path) -> None:
    """Remove what writers of the file that were killed left under other names."""
    for left in path.parent.glob(f".{escape(path.name)}.*"):
        process = left.name.removeprefix(f".{path.name}.").partition(".")[0]
        with suppress(OSError, ValueError):
            try:
                os.kill(int(process), 0)
            except ProcessLookupError:
                left.unlink()
