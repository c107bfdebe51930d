"""Fetch a release's source distribution: digest checked, cached, unpacked in one step.

The archive is kept beside the unpacked folder, so that a folder that was cut short or changed is
put right without the network.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
from pathlib import Path

import requests
from packaging.version import InvalidVersion, Version
from pypi_simple import (
    DigestMismatchError,
    DistributionPackage,
    NoDigestsError,
    NoSuchProjectError,
    PyPISimple,
    UnsupportedContentTypeError,
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
from spec.errors import InputError
from spec.functions.case_files import write_atomically

__all__ = ["CI_RELEASES", "Source", "fetch", "from_directory", "releases"]

CI_RELEASES = ("0.23.0", "0.24.0", "0.33.0")
"""Releases that continuous integration checks: the last before pull request 46315, the first with
it, and the newest."""

_TIMEOUT_SECONDS = 60.0
_SETTINGS = "pyproject.toml"


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
        return present
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
            with progress_bar(package.filename, progress) as bar:
                index.download_package(package, temporary, progress=bar, timeout=_TIMEOUT_SECONDS)
            temporary.replace(archive)
        except (DigestMismatchError, NoDigestsError) as error:
            raise InputError(
                f"{package.filename}: what was downloaded is damaged or incomplete ({error}); "
                "nothing was kept, run the command again"
            ) from None
        except requests.RequestException as error:
            raise _network_error(package.url, error) from None
        except OSError as error:
            raise InputError(f"{archive}: cannot be written ({error.strerror})") from None
        finally:
            temporary.unlink(missing_ok=True)
    write_atomically(_sum_file(archive), published + "\n")


def _find(release: str, index: PyPISimple) -> DistributionPackage:
    try:
        page = index.get_project_page(PACKAGE, timeout=_TIMEOUT_SECONDS)
    except NoSuchProjectError:
        raise InputError(f"{index.endpoint}: this index has no project {PACKAGE}") from None
    except UnsupportedContentTypeError as error:
        raise InputError(f"{index.endpoint}: not a package index ({error})") from None
    except requests.RequestException as error:
        raise _network_error(index.endpoint, error) from None
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
    except (tarfile.TarError, EOFError) as error:
        archive.unlink(missing_ok=True)
        raise InputError(
            f"{archive}: not a complete archive ({error}); it was removed, run the command again"
        ) from None
    except OSError as error:
        if unpacked(cache, release) is not None:
            return  # another process put the same folder there first
        raise InputError(f"{folder}: cannot be unpacked ({error.strerror or error})") from None


def _extract(archive: Path, into: Path) -> None:
    """Take the package folder and the lint settings out of a source distribution, in one pass."""
    found = False
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
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
