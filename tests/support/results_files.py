"""Files that ``--json`` writes, held against the published schema whenever a test reads one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

from proofs.results.document import SCHEMA_FILE, Kind, dumps, loads

VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))


def read_results(path: Path, kind: Kind) -> dict[str, Any]:
    """The data of a file of results, which has the published shape and can be read back.

    Args:
        kind: what it has to say that it is.
    """
    text = path.read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    VALIDATOR.validate(data)
    assert data["kind"] == kind
    assert dumps(loads(text, str(path))) == text
    return data
