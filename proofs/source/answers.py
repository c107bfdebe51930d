"""Answers of earlier runs, in the user's cache folder: what was settled is not asked again.

An answer is found by all that could change it: the question itself, what it read of the release
(:mod:`proofs.source.code.reads`), this program's code, the solvers and Python. Releases that are
the same where a question looks share its answer, whatever they are called. What is not settled is
not kept, and a file that cannot be read is as good as none.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from platformdirs import user_cache_path
from pydantic import TypeAdapter, ValidationError

from proofs.results.code_digest import code_digest
from proofs.source.ask.piece import Piece
from proofs.source.code.reads import Read, Reads
from proofs.source.code.release import ReleaseSource
from spec.errors import InputError
from spec.functions.case_files import write_atomically
from spec.verdict import Verdict

Job: TypeAlias = "Callable[[ReleaseSource], Piece | Sequence[Piece]]"
"""A question, or several on one exploration: a function of a module, or a partial one of it."""

_MOST_BYTES = 128 * 2**20
_SETTLED = (Verdict.PROVED, Verdict.REFUTED)
_CODE = "proofs.source.check"
_MADE_WITH = ("z3-solver", "cvc5", "numpy", "pydantic")
_Reads: TypeAlias = list[list[Read]]


@dataclass(frozen=True)
class Settled:
    """What became of a question.

    Attributes:
        pieces: its answers.
        reads: what it read of the release.
    """

    pieces: tuple[Piece, ...]
    reads: tuple[Read, ...]


def ask(job: Job, release: ReleaseSource) -> Settled:
    """Settle a question, and note what it reads of the release."""
    reads = Reads()
    found = job(release.watched(reads))
    pieces = (found,) if isinstance(found, Piece) else tuple(found)
    return Settled(pieces, reads.listed)


class Answers:
    """The answers that are kept in a folder, in small files of JSON.

    Args:
        folder: where they are kept; in the user's cache folder by default.
        most_bytes: size of the folder above which the oldest files go.
    """

    def __init__(self, folder: Path | None = None, most_bytes: int = _MOST_BYTES) -> None:
        self._folder = folder or user_cache_path("residency") / "answers"
        self._most_bytes = most_bytes
        self._has_new = False

    def find(self, job: Job | str, release: ReleaseSource, name: str) -> tuple[Piece, ...] | None:
        """The answer of an earlier run, if there is one.

        Args:
            job: the question, or what it is in words.
            release: what it is asked about.
            name: what the release is called now.
        """
        question = _question(job)
        for reads in self._load(_READS, question) or ():
            pieces = self._load(_PIECES, _key(question, reads, release))
            if pieces is not None:
                return tuple(_called(piece, "", name) for piece in pieces)
        return None

    def keep(self, job: Job | str, release: ReleaseSource, name: str, settled: Settled) -> None:
        """Keep an answer, if it is one: nothing that another run might settle otherwise."""
        question, reads = _question(job), list(settled.reads)
        if any(piece.verdict not in _SETTLED for piece in settled.pieces) or " at 0x" in question:
            return
        findings = [piece.finding for piece in settled.pieces if piece.finding is not None]
        if not all(finding.target.startswith(name) for finding in findings):
            return
        pieces = tuple(_called(piece, name, "") for piece in settled.pieces)
        text = _PIECES.dump_json(pieces)
        if name.encode() in text or _PIECES.validate_json(text) != pieces:
            # It holds the release's name, or something that JSON does not.
            return
        # Another release may have led the question elsewhere: both readings are kept.
        known: _Reads = self._load(_READS, question) or []
        if self._save(_PIECES, _key(question, reads, release), pieces) and reads not in known:
            self._save(_READS, question, [reads, *known][:_MOST_READINGS])

    def trim(self) -> None:
        """Drop what was not used for longest, if the folder has grown too large."""
        if not self._has_new:
            return
        files: list[tuple[float, int, str]] = []
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    status = entry.stat()
                    files.append((status.st_mtime, status.st_size, entry.path))
        size = sum(size for _, size, _ in files)
        for _, each, path in sorted(files):
            if size <= self._most_bytes:
                break
            size -= each
            with suppress(OSError):
                Path(path).unlink()

    def _path(self, key: str) -> Path:
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()}.json"

    def _load(self, adapter: TypeAdapter[Any], key: str) -> Any:
        path = self._path(key)
        try:
            found = adapter.validate_json(path.read_bytes())
            os.utime(path)
        except (OSError, ValidationError):
            return None
        return found

    def _save(self, adapter: TypeAdapter[Any], key: str, content: object) -> bool:
        try:
            write_atomically(self._path(key), adapter.dump_json(content).decode())
        except InputError:
            # A folder that cannot be written to costs time only.
            return False
        self._has_new = True
        return True


_MOST_READINGS = 16
"""Ways in which a question is known to read releases; each costs a look."""

_PIECES: TypeAdapter[Any] = TypeAdapter(tuple[Piece, ...])
_READS: TypeAdapter[Any] = TypeAdapter(_Reads)


def _called(piece: Piece, before: str, after: str) -> Piece:
    """The piece with the release's name in its finding's target exchanged for another."""
    if piece.finding is None:
        return piece
    target = after + piece.finding.target.removeprefix(before)
    return replace(piece, finding=replace(piece.finding, target=target))


def _question(job: Job | str) -> str:
    """The question and all that answers it, the release apart."""
    if isinstance(job, str):
        return json.dumps([job, *_made_by()])
    function = job.func if isinstance(job, partial) else job
    arguments: dict[str, Any] = {}
    if isinstance(job, partial):
        arguments = {key: value for key, value in job.keywords.items() if key != "name"}
        arguments |= {str(index): value for index, value in enumerate(job.args)}
    named = f"{function.__module__}.{function.__qualname__}"
    return json.dumps([named, repr(sorted(arguments.items())), *_made_by()])


@cache
def _made_by() -> tuple[str, ...]:
    packages = (version(name) for name in _MADE_WITH)
    return (code_digest(_CODE), sys.version, platform.machine(), *packages)


def _key(question: str, reads: Sequence[Read], release: ReleaseSource) -> str:
    """The question, and what it reads as it stands in a release."""
    return json.dumps([question, [[*read, release.digest_of(read)] for read in reads]])
