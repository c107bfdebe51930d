"""The source of one vLLM: a directory that holds nothing but the package ``vllm``, and its digest.

A source distribution also ships a package named ``tests``; were its root on ``sys.path``, it would
shadow ours. So only the package folder is unpacked, or linked, into a directory of its own.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import stat
from dataclasses import asdict, dataclass, field
from pathlib import Path

from platformdirs import user_cache_path

from spec.errors import InputError, described
from spec.functions.case_files import write_atomically

PACKAGE = "vllm"
_RECORD = "record.json"

_MOST_FILES, _MOST_BYTES = 100_000, 16 << 30
"""Far more than a vLLM has, its compiled parts included."""

_ANY = "surrogateescape"
"""How names that are no UTF-8 are encoded: as they are."""


@dataclass(frozen=True)
class Source:
    """Where the source of one vLLM lies.

    Attributes:
        name: for reports: ``vllm 0.24.0``, or ``vllm`` and the directory it came from.
        root: the directory to put on ``sys.path``; it holds nothing but ``vllm``.
        package: the package folder itself.
        release: the release's number, or ``None`` for a directory.
        digest: ``sha256:`` and the digest of the source distribution; for a directory ``tree:`` and
            a digest over its files.
        left_out: what of a directory is in no digest, since it cannot be read as a file.
    """

    name: str
    root: Path
    package: Path
    release: str | None
    digest: str | None
    left_out: tuple[str, ...] = field(default=(), compare=False)

    @property
    def lint_settings(self) -> Path | None:
        """The release's own ``pyproject.toml``, or ``None`` where it is not at hand."""
        for folder in (self.root.parent, self.package.resolve().parent):
            if (folder / "pyproject.toml").is_file():
                return folder / "pyproject.toml"
        return None


@dataclass(frozen=True)
class Record:
    """What was unpacked, so that a folder that was cut short or changed is recognised."""

    release: str
    archive_sha256: str
    tree: str


def cache_folder() -> Path:
    """The folder in which sources are kept, under the user's cache folder."""
    return user_cache_path("residency") / PACKAGE


def tree_digest(package: Path) -> str:
    """SHA-256 over the names and contents of a package's files, byte code left out.

    What a link leads to is part of it, as it is part of what is imported.

    Raises:
        OSError: something cannot be read.
        InputError: there is far more than a package holds.
    """
    return _Digest(package).hexdigest


class _Digest:
    """The digest of a package, and what is not in it.

    Attributes:
        left_out: what is no file, and so was not read, each with its kind.
    """

    def __init__(self, package: Path) -> None:
        self.left_out: list[str] = []
        self._package = package
        self._sha256 = hashlib.sha256()
        self._files = self._bytes = 0
        # Real folders, each read once: links can lead back, and to one folder many times over.
        self._seen = {os.path.realpath(package): "."}
        self._add_folder(package, "")
        self.hexdigest = self._sha256.hexdigest()

    def _add_folder(self, folder: Path, name: str) -> None:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        is_cache = folder.name == "__pycache__"
        folders = []
        for entry in entries:
            relative = f"{name}{entry.name}"
            if os.path.isdir(entry.path):  # noqa: PTH112 -- a link in a circle is none
                folders.append((Path(entry.path), relative))
            elif not (is_cache and entry.name.endswith(".pyc")):
                self._add_file(Path(entry.path), relative)
        for path, relative in folders:
            place = os.path.realpath(path)
            if place in self._seen:
                self._add(relative, f"the folder {self._seen[place]}".encode(errors=_ANY))
            else:
                self._seen[place] = relative
                self._add_folder(path, f"{relative}/")

    def _add_file(self, path: Path, relative: str) -> None:
        try:
            mode = path.stat().st_mode
        except OSError:
            if not path.is_symlink():
                raise
            kind = "a link that leads nowhere"
        else:
            if stat.S_ISREG(mode):
                self._add(relative, _content(path))
                return
            kind = "a pipe, a socket or a device"
        self._add(relative, kind.encode())
        self.left_out.append(f"{relative} is {kind}")

    def _add(self, relative: str, content: bytes) -> None:
        self._files += 1
        self._bytes += len(content)
        if self._files > _MOST_FILES or self._bytes > _MOST_BYTES:
            raise InputError(
                f"{self._package}: holds more than {_MOST_FILES} files or {_MOST_BYTES >> 30} GiB, "
                f"far more than a vLLM; where does a link like {relative} lead?"
            )
        self._sha256.update(f"{relative}\0{len(content)}\0".encode(errors=_ANY))
        self._sha256.update(content)


def _content(path: Path) -> bytes:
    """What a file holds; no more than it says, as files of the system may never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(os.fstat(descriptor).st_size)


def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file of a package.

    Raises:
        InputError: it is no file, cannot be read, or holds nothing that Python takes.
    """
    if path.exists() and not path.is_file():  # A pipe would be waited for.
        raise InputError(f"{path}: cannot be read as Python source: it is no file")
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"{path}: cannot be read as Python source ({described(error)})") from None


def unpacked_folder(cache: Path, release: str) -> Path:
    """The folder of an unpacked release: ``path/vllm``, its record and its ``pyproject.toml``."""
    return cache / f"{PACKAGE}-{release}"


def write_record(folder: Path, record: Record) -> None:
    """Note what an unpacked folder holds."""
    write_atomically(folder / _RECORD, json.dumps(asdict(record), indent=2) + "\n")


def unpacked(cache: Path, release: str) -> Source | None:
    """The release as it lies in the cache, or ``None`` when it is absent, incomplete or changed."""
    folder = unpacked_folder(cache, release)
    root = folder / "path"
    try:
        record = Record(**json.loads((folder / _RECORD).read_text(encoding="utf-8")))
        if record.release != release or tree_digest(root / PACKAGE) != record.tree:
            return None
    except (OSError, ValueError, TypeError, InputError):
        return None
    return Source(
        name=f"{PACKAGE} {release}",
        root=root,
        package=root / PACKAGE,
        release=release,
        digest=f"sha256:{record.archive_sha256}",
    )


def cached_releases(cache: Path | None = None) -> tuple[str, ...]:
    """Releases with an unpacked folder in the cache, complete or not."""
    folder = cache or cache_folder()
    prefix = f"{PACKAGE}-"
    return tuple(
        sorted(
            entry.name.removeprefix(prefix)
            for entry in (folder.iterdir() if folder.is_dir() else ())
            if entry.name.startswith(prefix) and entry.is_dir()
        )
    )


def from_directory(path: Path, cache: Path | None = None) -> Source:
    """A checkout, an installed vLLM's ``site-packages``, or a package folder itself.

    Only the package folder is linked, so that nothing beside it becomes importable.

    Raises:
        InputError: there is no ``vllm`` package, it cannot be read, or the link cannot be made.
    """
    given = path.expanduser()
    candidates = (given / PACKAGE, given)
    package = next(
        (c for c in candidates if c.name == PACKAGE and (c / "__init__.py").is_file()), None
    )
    if package is None:
        raise InputError(
            f"{path}: no vLLM there; give a checkout, a site-packages folder, or the folder "
            f"{PACKAGE} itself (looked for {given / PACKAGE / '__init__.py'})"
        )
    package = package.resolve()
    key = hashlib.sha256(str(package).encode()).hexdigest()[:16]
    root = (cache or cache_folder()) / "links" / key
    link = root / PACKAGE
    try:
        root.mkdir(parents=True, exist_ok=True)
        if not (link.is_symlink() and link.resolve() == package):
            link.unlink(missing_ok=True)
            link.symlink_to(package, target_is_directory=True)
    except OSError as error:
        raise InputError(f"{link}: cannot link to {package} ({error.strerror})") from None
    try:
        digest = _Digest(package)
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror})") from None
    return Source(
        name=f"{PACKAGE} at {package.parent}",
        root=root,
        package=link,
        release=None,
        digest=f"tree:{digest.hexdigest}",
        left_out=tuple(digest.left_out),
    )
