"""Fetch a release's source distribution: digest checked, cached, unpacked in one step.

The archive is kept beside the unpacked folder, so that a folder that was cut short or changed is
put right without the network.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import requests
from packaging.version import InvalidVersion, Version
from pypi_simple import (
    DigestMismatchError,
    DistributionPackage,
    NoDigestsError,
    NoSuchProjectError,
    PyPISimple,
    UnsupportedContentTypeError,
    UnsupportedRepoVersionError,
)

from impl.vllm.launch.download_bar import progress_bar
from impl.vllm.launch.source import (
    PACKAGE,
    Record,
    Source,
    cache_folder,
    from_directory,
    tree_digest,
    unpacked,
    unpacked_folder,
    write_record,
)
from spec.errors import InputError, described, message_of
from spec.functions.case_files import write_atomically

__all__ = ["CI_RELEASES", "Source", "fetch", "from_directory", "releases"]

CI_RELEASES = ("0.23.0", "0.24.0", "0.33.0")
"""Releases that continuous integration checks: the last before pull request 46315, the first with
it, and the newest."""

_TIMEOUT_SECONDS = 60.0
_SETTINGS = "pyproject.toml"

_MOST_FILES, _MOST_BYTES = 50_000, 2 << 30
"""Far more than the source of a release has, unpacked."""

_MOST_BYTES_OF_A_PAGE, _MOST_BYTES_OF_AN_ARCHIVE = 64 << 20, 512 << 20
"""Of one answer, after it was decompressed: a hundred times what the index answers, and ten times
the largest archive."""

_LOCK = ".lock"
_HALF_DONE = (f".{PACKAGE}-", ".old.")
"""How names of what is half done begin."""


def releases() -> tuple[str, ...]:
    """Releases that continuous integration fetches and checks."""
    return CI_RELEASES


def fetch(
    release: str,
    progress: bool = True,
    *,
    cache: Path | None = None,
    client: PyPISimple | None = None,
) -> Source:
    """The source of a release; nothing is fetched when it is there already.

    Args:
        release: a version such as ``0.24.0``.
        progress: show a progress bar when standard error is a terminal.
        cache: where sources are kept; the user's cache folder by default.
        client: the package index; the public one by default.

    Raises:
        InputError: an unknown release, no network, or an archive that does not match its digest.
    """
    release = _canonical(release)
    folder = cache or cache_folder()
    present = unpacked(folder, release)
    if present is not None:
        _sweep_unless_in_use(folder)
        return present
    with _alone_in(folder) as is_alone:
        if is_alone:
            _sweep(folder)
        source = unpacked(folder, release)  # Another process may have fetched it meanwhile.
        if source is None:
            archive = folder / f"{PACKAGE}-{release}.tar.gz"
            if not _is_whole(archive):
                _download(release, archive, progress, client)
            _unpack(archive, folder, release)
            source = unpacked(folder, release)
    if source is None:
        raise InputError(
            f"{unpacked_folder(folder, release)}: changed while it was unpacked; run the command "
            "again when nothing else writes there"
        )
    return source


@contextmanager
def _alone_in(cache: Path, *, waits: bool = True) -> Iterator[bool]:
    """Let one process at a time fetch, so that what it finds half done was left by a kill.

    The system gives the lock back when a process ends, however it ends.

    Args:
        waits: whether to wait for another process.

    Returns:
        Whether this one is alone; it is not where the file system has no locks.

    Raises:
        InputError: the folder cannot be written to.
    """
    file = cache / _LOCK
    how = fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB
    while True:
        try:
            cache.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise InputError(f"{cache}: cannot be written ({error.strerror})") from None
        try:
            fcntl.flock(descriptor, how)
        except OSError:
            os.close(descriptor)
            yield False
            return
        try:
            if os.path.samestat(os.fstat(descriptor), file.stat()):
                break
        except FileNotFoundError:
            pass
        os.close(descriptor)  # Whoever had the lock took the file away with it.
    try:
        yield True
    finally:
        file.unlink(missing_ok=True)
        os.close(descriptor)


def _leftovers(cache: Path) -> list[Path]:
    """What is half done in the cache: downloads, folders being unpacked, folders replaced."""
    with suppress(OSError):
        return [path for path in cache.iterdir() if path.name.startswith(_HALF_DONE)]
    return []


def _sweep(cache: Path) -> None:
    """Remove what processes that were killed left half done; only for who is alone."""
    for path in _leftovers(cache):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()


def _sweep_unless_in_use(cache: Path) -> None:
    if _leftovers(cache):
        with suppress(InputError), _alone_in(cache, waits=False) as is_alone:
            if is_alone:
                _sweep(cache)


def _canonical(release: str) -> str:
    """The release as the index spells it: ``0.24.0`` for ``v0.24.0`` and for ``0.24``."""
    # The release becomes part of a path: only what is a version may pass.
    try:
        if release != release.strip():
            raise InvalidVersion(release)
        version = Version(release)
        if version.epoch:  # No release has one, and the cache's folders leave it out.
            raise InvalidVersion(release)
    except InvalidVersion:
        raise InputError(
            f"{release!r} is not a release of {PACKAGE}; give a version such as {CI_RELEASES[-1]}, "
            "or the folder of a checkout"
        ) from None
    missing = (0,) * (3 - len(version.release))
    padded = ".".join(str(part) for part in (*version.release, *missing))
    return padded + str(version)[len(version.base_version) :]


def _sum_file(archive: Path) -> Path:
    return archive.with_name(f"{archive.name}.sha256")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_whole(archive: Path) -> bool:
    """Whether a kept archive still has the digest that it was published with."""
    try:
        return _sha256(archive) == _sum_file(archive).read_text(encoding="utf-8").strip()
    except OSError:
        return False


def _download(release: str, archive: Path, progress: bool, client: PyPISimple | None) -> None:
    with client or PyPISimple() as index:
        _bound_answers(index)
        package = _find(release, index)
        published = package.digests.get("sha256")
        if published is None:
            raise InputError(
                f"{package.filename}: the index publishes no SHA-256 digest for it, so it cannot "
                "be checked; fetch it yourself and give its folder with --source"
            )
        try:
            archive.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=archive.parent, prefix=f".{archive.name}.")
            os.close(descriptor)
        except OSError as error:
            raise InputError(f"{archive.parent}: cannot be written ({error.strerror})") from None
        temporary = Path(name)
        try:
            with progress_bar(archive.name, progress) as bar:
                index.download_package(package, temporary, progress=bar, timeout=_TIMEOUT_SECONDS)
            temporary.replace(archive)
        except (DigestMismatchError, NoDigestsError) as error:
            raise InputError(
                f"{package.filename}: what was downloaded is damaged or incomplete "
                f"({message_of(error)}); nothing was kept, run the command again"
            ) from None
        except requests.RequestException as error:
            raise _network_error(package.url, error) from None
        except OSError as error:
            raise InputError(f"{archive}: cannot be written ({error.strerror})") from None
        finally:
            temporary.unlink(missing_ok=True)
    write_atomically(_sum_file(archive), published + "\n")


def _bound_answers(index: PyPISimple) -> None:
    """Let the index answer with so much and no more, whatever it says of the length."""
    hooks = index.s.hooks["response"]
    if _bounded not in hooks:
        hooks.append(_bounded)


def _bounded(response: requests.Response, **how: Any) -> None:
    """Count what is read of an answer, and refuse the rest of one that is too long."""
    most = _MOST_BYTES_OF_AN_ARCHIVE if how.get("stream") else _MOST_BYTES_OF_A_PAGE
    read = response.iter_content

    def counted(*arguments: Any, **named: Any) -> Iterator[bytes]:
        size = 0
        for chunk in read(*arguments, **named):
            size += len(chunk)
            if size > most:
                raise InputError(
                    f"{response.url}: refused, it is longer than {most >> 20} MiB, far more than "
                    "any release; nothing was kept"
                )
            yield chunk

    # Whoever reads an answer, or a redirection, does so by this method.
    setattr(response, "iter_content", counted)  # noqa: B010 -- a method cannot be assigned to


def _find(release: str, index: PyPISimple) -> DistributionPackage:
    try:
        page = index.get_project_page(PACKAGE, timeout=_TIMEOUT_SECONDS)
    except NoSuchProjectError:
        raise InputError(f"{index.endpoint}: this index has no project {PACKAGE}") from None
    except requests.RequestException as error:
        raise _network_error(index.endpoint, error) from None
    except InputError:
        raise
    except (UnsupportedContentTypeError, UnsupportedRepoVersionError, ValueError) as error:
        raise InputError(f"{index.endpoint}: not a package index ({described(error)})") from None
    wanted = Version(release)
    packages: dict[Version, DistributionPackage] = {}
    for package in page.packages:
        if package.package_type == "sdist" and package.version is not None:
            try:
                packages[Version(package.version)] = package
            except InvalidVersion:
                continue
    if wanted not in packages:
        raise InputError(
            f"{PACKAGE} {release}: no such release with a source distribution; "
            f"{_near(wanted, sorted(packages))}"
        )
    return packages[wanted]


def _near(wanted: Version, versions: list[Version]) -> str:
    if not versions:
        return "the index lists none at all"
    lower = [version for version in versions if version < wanted][-2:]
    higher = [version for version in versions if version > wanted][:2]
    near = ", ".join(str(version) for version in lower + higher)
    return f"near it there are {near}; the newest is {versions[-1]}"


def _network_error(where: str, error: requests.RequestException) -> InputError:
    if isinstance(error, requests.HTTPError) and error.response is not None:
        reason = f"it answered {error.response.status_code} {error.response.reason}"
    else:
        reason = f"no connection ({type(error).__name__})"
    return InputError(
        f"{where}: {reason}; check the network, or give a checkout or an installed vLLM with "
        "--source"
    )


def _unpack(archive: Path, cache: Path, release: str) -> None:
    """Unpack into a folder of another name, then move it into place as a whole."""
    folder = unpacked_folder(cache, release)
    try:
        temporary = Path(tempfile.mkdtemp(dir=cache, prefix=f".{folder.name}."))
        try:
            _extract(archive, temporary)
            write_record(
                temporary,
                Record(release, _sha256(archive), tree_digest(temporary / "path" / PACKAGE)),
            )
            temporary.chmod(0o755)
            if folder.exists():
                # An unfinished or changed folder makes way first: a folder cannot be replaced.
                folder.rename(Path(tempfile.mkdtemp(dir=cache, prefix=".old.")) / folder.name)
            temporary.rename(folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            for old in cache.glob(".old.*"):
                shutil.rmtree(old, ignore_errors=True)
    except (tarfile.FilterError, KeyError) as error:
        # Fetching it once more would bring the same.
        raise InputError(
            f"{archive}: refused, it holds what no release does: {error.args[0]}"
        ) from None
    except (tarfile.TarError, EOFError, zlib.error) as error:
        archive.unlink(missing_ok=True)
        raise InputError(
            f"{archive}: not a complete archive ({message_of(error)}); it was removed, run the "
            "command again"
        ) from None
    except OSError as error:
        if unpacked(cache, release) is not None:
            return  # another process put the same folder there first
        raise InputError(f"{folder}: cannot be unpacked ({error.strerror or error})") from None


def _extract(archive: Path, into: Path) -> None:
    """Take the package folder and the lint settings out of a source distribution, in one pass."""
    found = False
    files = size = 0
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            files += 1
            size += member.size
            if files > _MOST_FILES or size > _MOST_BYTES:
                raise InputError(
                    f"{archive}: refused, it holds more than {_MOST_FILES} files or "
                    f"{_MOST_BYTES >> 30} GiB, far more than any release"
                )
            _, _, inside = member.name.partition("/")
            if inside == _SETTINGS:
                destination = into
            elif inside.startswith(f"{PACKAGE}/"):
                destination = into / "path"
                found = found or inside == f"{PACKAGE}/__init__.py"
            else:
                continue
            tar.extract(member.replace(name=inside), destination, filter="data")
    if not found:
        raise InputError(
            f"{archive}: holds no package {PACKAGE}; give a checkout with --source instead"
        )
