"""The source of one vLLM: a directory that holds nothing but the package ``vllm``, and its digest.

A source distribution also ships a package named ``tests``; were its root on ``sys.path``, it would
shadow ours. So only the package folder is unpacked, or linked, into a directory of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from platformdirs import user_cache_path

from spec.errors import InputError
from spec.functions.case_files import write_atomically

PACKAGE = "vllm"
_RECORD = "record.json"


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
    """

    name: str
    root: Path
    package: Path
    release: str | None
    digest: str | None

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
    """SHA-256 over the names and contents of a package's files, byte code left out."""
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(package):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            path = Path(folder) / name
            content = path.read_bytes()
            relative = path.relative_to(package).as_posix()
            digest.update(f"{relative}\0{len(content)}\0".encode())
            digest.update(content)
    return digest.hexdigest()


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
    except (OSError, ValueError, TypeError):
        return None
    if record.release != release or tree_digest(root / PACKAGE) != record.tree:
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
        InputError: there is no ``vllm`` package, or the link cannot be made.
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
    return Source(
        name=f"{PACKAGE} at {package.parent}",
        root=root,
        package=link,
        release=None,
        digest=f"tree:{tree_digest(package)}",
    )
