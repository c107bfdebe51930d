"""Fetching a release's source: whole, checked, repaired, and refused with a clear message."""

from __future__ import annotations

import gzip
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner
from pypi_simple import PyPISimple

from impl.vllm.launch import fetch as fetching
from impl.vllm.launch.fetch import CI_RELEASES, fetch, from_directory, releases
from impl.vllm.launch.source import cached_releases, unpacked
from proofs.commands.vllm import vllm as vllm_command
from spec.errors import InputError

FILES = {
    "pyproject.toml": b"[tool.ruff]\n",
    "tests/__init__.py": b"",
    "vllm/__init__.py": b"__version__ = '1.0.0'\n",
    "vllm/v1/request.py": b"class Request: pass\n",
}


def archive_of(files: dict[str, bytes], top: str) -> bytes:
    buffer = io.BytesIO()
    # Without a time of its own, so that the same files always give the same digest.
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for name, content in files.items():
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


class Index:
    """A package index on this machine that counts what is asked of it."""

    def __init__(self, url: str, pages: dict[str, tuple[int, str, bytes]]) -> None:
        self._url = url
        self._pages = pages
        self.requests: list[str] = []
        self.floods: dict[str, tuple[int, bool, Callable[[], Iterator[bytes]]]] = {}
        self._links: list[str] = []
        self._publish_page()

    def client(self) -> PyPISimple:
        """A client of this index."""
        return PyPISimple(f"{self._url}/simple/")

    def publish(self, release: str, content: bytes, digest: str | None = None) -> None:
        """Offer an archive, with its own digest, another one, or an empty one for none."""
        name = f"vllm-{release}.tar.gz"
        sha256 = hashlib.sha256(content).hexdigest() if digest is None else digest
        fragment = f"#sha256={sha256}" if sha256 else ""
        self._links.append(f'<a href="/files/{name}{fragment}">{name}</a>')
        self._pages[f"/files/{name}"] = (200, "application/gzip", content)
        self._publish_page()

    def break_down(self) -> None:
        """Answer as an index does that is down."""
        self._pages["/simple/vllm/"] = (503, "text/plain", b"later")

    def answer_with(self, kind: str, content: bytes) -> None:
        """Answer the question for releases with something else."""
        self._pages["/simple/vllm/"] = (200, kind, content)

    def flood(self, what: str) -> Callable[[], int]:
        """Go on sending without an end; how many times a mebibyte was sent since."""
        place = "/files/vllm-1.0.0.tar.gz" if "archive" in what else "/simple/vllm/"
        sent: list[int] = []

        def chunks() -> Iterator[bytes]:
            packer = zlib.compressobj(wbits=31) if what == "swollen archive" else None
            while len(sent) < 1000:
                sent.append(1)
                chunk = b" " * (1 << 20)
                yield chunk if packer is None else packer.compress(chunk)

        status = 302 if what == "redirection" else 200
        self.floods[place] = (status, what == "swollen archive", chunks)
        return lambda: len(sent)

    def _publish_page(self) -> None:
        html = f"<!DOCTYPE html><html><body>{''.join(self._links)}</body></html>"
        self._pages["/simple/vllm/"] = (200, "text/html", html.encode())


@pytest.fixture
def index() -> Iterator[Index]:
    pages: dict[str, tuple[int, str, bytes]] = {}
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            if self.path in made.floods:
                self.flood(*made.floods[self.path])
                return
            status, kind, content = pages.get(self.path, (404, "text/plain", b"no"))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def flood(self, status: int, packed: bool, chunks: Callable[[], Iterator[bytes]]) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "text/html")
            self.send_header("Location", "/elsewhere")
            if packed:
                self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            with suppress(OSError):  # The reader has gone, as it should.
                for chunk in chunks():
                    self.wfile.write(chunk)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- as inherited
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    made = Index(f"http://127.0.0.1:{server.server_port}", pages)
    made.requests = seen
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def published(index: Index) -> Index:
    index.publish("1.0.0", archive_of(FILES, "vllm-1.0.0"))
    return index


def test_only_the_package_becomes_importable(published: Index, tmp_path: Path) -> None:
    """The distribution's own ``tests`` would shadow ours if it were unpacked beside ``vllm``."""
    source = fetch("1.0.0", cache=tmp_path, client=published.client())
    assert [entry.name for entry in source.root.iterdir()] == ["vllm"]
    assert (source.package / "v1" / "request.py").read_bytes() == FILES["vllm/v1/request.py"]
    assert source.name == "vllm 1.0.0"
    assert source.lint_settings is not None
    content = archive_of(FILES, "vllm-1.0.0")
    assert source.digest == f"sha256:{hashlib.sha256(content).hexdigest()}"


def test_a_second_fetch_needs_no_network(published: Index, tmp_path: Path) -> None:
    """A run in a closed network would fail although everything is there."""
    first = fetch("1.0.0", cache=tmp_path, client=published.client())
    published.requests.clear()
    assert fetch("1.0.0", cache=tmp_path, client=published.client()) == first
    assert published.requests == []


def test_nothing_is_printed_without_a_terminal(
    published: Index, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A progress bar in a log file is noise."""
    fetch("1.0.0", cache=tmp_path, client=published.client())
    assert capfd.readouterr() == ("", "")


def test_unknown_release_names_its_neighbours(published: Index, tmp_path: Path) -> None:
    """Whoever mistypes a release must see which ones exist."""
    for release in ("0.9.0", "1.2.0", "2.0.0"):
        published.publish(release, b"")
    with pytest.raises(InputError, match=r"vllm 1\.1\.0: no such release.*1\.0\.0, 1\.2\.0, 2"):
        fetch("1.1.0", cache=tmp_path, client=published.client())


@pytest.mark.parametrize(
    "release", ["", "latest", "../1.0.0", "1.0.0/../../x", "1.0.0 ", "1!1.0.0"]
)
def test_what_is_no_version_never_becomes_a_path(
    release: str, published: Index, tmp_path: Path
) -> None:
    """A release is part of a folder's name; anything else could leave the cache."""
    with pytest.raises(InputError, match="is not a release"):
        fetch(release, cache=tmp_path, client=published.client())
    assert published.requests == []


def test_no_network_is_said_plainly(tmp_path: Path) -> None:
    """Without a network the way out is a folder that is there already."""
    closed = PyPISimple("http://127.0.0.1:9/simple/")
    with pytest.raises(InputError, match=r"no connection.*--source"):
        fetch("1.0.0", cache=tmp_path, client=closed)


@pytest.mark.parametrize("what", ["archive", "swollen archive", "index", "redirection"])
def test_an_answer_without_an_end_is_cut_off(
    what: str, published: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong: an index that goes on sending fills the memory or the disk."""
    monkeypatch.setattr(fetching, "_MOST_BYTES_OF_A_PAGE", 2 << 20)
    monkeypatch.setattr(fetching, "_MOST_BYTES_OF_AN_ARCHIVE", 2 << 20)
    cut = published.flood(what)
    with pytest.raises(InputError, match="refused, it is longer than 2 MiB") as refused:
        fetch("1.0.0", cache=tmp_path, client=published.client())
    assert "\n" not in str(refused.value)
    assert cut() < 1000, "it was read to its end"
    assert not list(tmp_path.glob(".vllm*"))
    assert unpacked(tmp_path, "1.0.0") is None


def test_an_index_that_answers_something_else_is_named(published: Index, tmp_path: Path) -> None:
    """Wrong: a page of JSON that is no index ends with an error that nobody expected."""
    published.answer_with("application/vnd.pypi.simple.v1+json", b'{"name": 1}')
    with pytest.raises(InputError, match="not a package index") as refused:
        fetch("1.0.0", cache=tmp_path, client=published.client())
    assert len(str(refused.value)) < 3000


def test_a_failing_index_is_named_with_its_answer(published: Index, tmp_path: Path) -> None:
    """An index that is down must not look like an unknown release."""
    published.break_down()
    with pytest.raises(InputError, match="503"):
        fetch("1.0.0", cache=tmp_path, client=published.client())


def test_a_release_without_a_digest_is_refused(index: Index, tmp_path: Path) -> None:
    """An archive that cannot be checked must not be run."""
    index.publish("1.0.0", archive_of(FILES, "vllm-1.0.0"), digest="")
    with pytest.raises(InputError, match="no SHA-256 digest"):
        fetch("1.0.0", cache=tmp_path, client=index.client())


@pytest.mark.parametrize("damage", ["cut short", "changed"])
def test_a_damaged_download_is_refused_and_not_kept(
    damage: str, index: Index, tmp_path: Path
) -> None:
    """Half an archive, or another one, must not be taken for the release."""
    whole = archive_of(FILES, "vllm-1.0.0")
    content = whole[:-20] if damage == "cut short" else whole[:-1] + bytes([whole[-1] ^ 1])
    index.publish("1.0.0", content, digest=hashlib.sha256(whole).hexdigest())
    with pytest.raises(InputError, match="damaged or incomplete"):
        fetch("1.0.0", cache=tmp_path, client=index.client())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("harm", ["a file missing", "a file changed", "no record", "a file added"])
def test_a_harmed_folder_is_put_right_without_the_network(
    harm: str, published: Index, tmp_path: Path
) -> None:
    """A run that was cut short, or an edit, must not be reported under the release's digest."""
    source = fetch("1.0.0", cache=tmp_path, client=published.client())
    victim = source.package / "v1" / "request.py"
    if harm == "a file missing":
        victim.unlink()
    elif harm == "a file changed":
        victim.write_text("class Request: broken = 1\n")
    elif harm == "a file added":
        (source.package / "more.py").write_text("")
    else:
        (source.root.parent / "record.json").unlink()
    assert unpacked(tmp_path, "1.0.0") is None
    published.requests.clear()
    assert fetch("1.0.0", cache=tmp_path, client=published.client()) == source
    assert victim.read_bytes() == FILES["vllm/v1/request.py"]
    assert not (source.package / "more.py").exists()
    assert published.requests == []
    assert not [entry for entry in tmp_path.iterdir() if entry.name.startswith(".")]


def test_byte_code_is_not_taken_for_a_change(published: Index, tmp_path: Path) -> None:
    """Importing writes byte code into the package; that must not force a new unpacking."""
    source = fetch("1.0.0", cache=tmp_path, client=published.client())
    (source.package / "__pycache__").mkdir()
    (source.package / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert unpacked(tmp_path, "1.0.0") == source


def test_a_cut_archive_in_the_cache_is_fetched_again(published: Index, tmp_path: Path) -> None:
    """A kept archive that was cut short must not be unpacked."""
    source = fetch("1.0.0", cache=tmp_path, client=published.client())
    archive = tmp_path / "vllm-1.0.0.tar.gz"
    archive.write_bytes(archive.read_bytes()[:40])
    shutil.rmtree(source.root.parent)
    published.requests.clear()
    assert fetch("1.0.0", cache=tmp_path, client=published.client()) == source
    assert published.requests


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"this is no archive", "not a complete archive"),
        (archive_of(FILES, "vllm-1.0.0")[:100], "not a complete archive"),
        (
            gzip.compress(b"x" * 10_240, mtime=0)[:10] + b"no deflated data",
            "not a complete archive",
        ),
        (archive_of({"README": b""}, "vllm-1.0.0"), "holds no package vllm"),
    ],
    ids=["text", "cut short", "no data", "no package"],
)
def test_an_archive_without_the_package_is_named(
    content: bytes, message: str, index: Index, tmp_path: Path
) -> None:
    """An archive can have the right digest and still not be what is needed."""
    index.publish("1.0.0", content)
    with pytest.raises(InputError, match=message):
        fetch("1.0.0", cache=tmp_path, client=index.client())
    assert unpacked(tmp_path, "1.0.0") is None


def test_an_archive_cannot_write_outside_its_folder(index: Index, tmp_path: Path) -> None:
    """A member with ``..`` in its name would overwrite files elsewhere."""
    files = {**FILES, "vllm/../../../evil.py": b"evil"}
    index.publish("1.0.0", archive_of(files, "vllm-1.0.0"))
    with pytest.raises(InputError, match=r"refused, it holds what no release does.*outside"):
        fetch("1.0.0", cache=tmp_path / "cache", client=index.client())
    assert not list(tmp_path.rglob("evil.py"))


def _with_member(member: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO(gzip.decompress(archive_of(FILES, "vllm-1.0.0")))
    with tarfile.open(fileobj=buffer, mode="a") as tar:
        tar.addfile(member)
    return gzip.compress(buffer.getvalue())


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (tarfile.CHRTYPE, ""),
        (tarfile.FIFOTYPE, ""),
        (tarfile.SYMTYPE, "/etc/passwd"),
        (tarfile.SYMTYPE, "../../../../x"),
        (tarfile.LNKTYPE, "../../../../x"),
        (tarfile.LNKTYPE, "vllm-1.0.0/vllm/none.py"),
    ],
)
def test_an_archive_with_what_no_release_has_says_so(
    kind: bytes, target: str, index: Index, tmp_path: Path
) -> None:
    """Wrong: it is called incomplete, and fetched again and again with the same end."""
    member = tarfile.TarInfo("vllm-1.0.0/vllm/odd")
    member.type, member.linkname = kind, target
    index.publish("1.0.0", _with_member(member))
    with pytest.raises(InputError, match="refused, it holds what no release does") as refused:
        fetch("1.0.0", cache=tmp_path, client=index.client())
    assert "run the command again" not in str(refused.value)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert unpacked(tmp_path, "1.0.0") is None


@pytest.mark.parametrize(("name", "limit"), [("_MOST_FILES", 3), ("_MOST_BYTES", 40)])
def test_an_archive_that_swells_is_refused(
    name: str, limit: int, published: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong: a few kilobytes fill the disk, or make files without end."""
    monkeypatch.setattr(f"impl.vllm.launch.fetch.{name}", limit)
    with pytest.raises(InputError, match="refused, it holds more than"):
        fetch("1.0.0", cache=tmp_path, client=published.client())
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


KILLED = """
import os, sys
from pathlib import Path
from impl.vllm.launch import fetch
def half(archive, into):
    (into / "path").mkdir()
    (into / "path" / "half").write_text("half")
    print("at work", flush=True)
    sys.stdin.read()
fetch._extract = half
cache, release = Path(sys.argv[1]), "1.0.0"
with fetch._alone_in(cache):
    fetch._unpack(cache / "vllm-1.0.0.tar.gz", cache, release)
"""


def test_what_a_kill_left_half_done_goes_with_the_next_fetch(
    published: Index, tmp_path: Path
) -> None:
    """Wrong: each kill leaves a release's size behind, or what is still at work is taken away."""
    cache = tmp_path / "cache"
    whole = fetch("1.0.0", cache=cache, client=published.client())
    before = sorted(cache.iterdir())
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(cache)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"at work\n"
    (half,) = (path for path in cache.iterdir() if path.name.startswith(".vllm-1.0.0."))
    assert fetch("1.0.0", cache=cache, client=published.client()) == whole
    assert half.is_dir()
    process.kill()
    process.communicate()
    (cache / ".vllm-1.0.0.tar.gz.abc").write_bytes(b"half a download")
    assert fetch("1.0.0", cache=cache, client=published.client()) == whole
    assert sorted(cache.iterdir()) == before


@pytest.mark.parametrize("given", ["checkout", "checkout/vllm"])
def test_a_directory_is_linked_alone(given: str, tmp_path: Path) -> None:
    """A checkout's other folders must not become importable with its package."""
    package = tmp_path / "checkout" / "vllm"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (tmp_path / "checkout" / "tests").mkdir()
    source = from_directory(tmp_path / given, cache=tmp_path / "cache")
    assert [entry.name for entry in source.root.iterdir()] == ["vllm"]
    assert source.release is None
    assert source.package.resolve() == package
    before = source.digest
    (package / "more.py").write_text("")
    assert from_directory(tmp_path / given, cache=tmp_path / "cache").digest != before


def test_a_directory_without_vllm_is_refused(tmp_path: Path) -> None:
    """A wrong folder must be told apart from an old release."""
    with pytest.raises(InputError, match="no vLLM there"):
        from_directory(tmp_path, cache=tmp_path / "cache")


def test_list_tells_whole_from_unfinished(
    published: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A half-unpacked release must not be listed as if it could be used."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = tmp_path / "residency" / "vllm"
    assert "fetch one with" in CliRunner().invoke(vllm_command, ["list"]).output
    fetch("1.0.0", cache=cache, client=published.client())
    (cache / "vllm-0.9.0").mkdir()
    assert cached_releases(cache) == ("0.9.0", "1.0.0")
    output = CliRunner().invoke(vllm_command, ["list"]).output
    assert "0.9.0      incomplete" in output
    assert "1.0.0      complete" in output


def test_the_command_prints_import_directories_and_plain_errors(
    published: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell reads the directory from standard output; a traceback there is of no use."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = fetch("1.0.0", cache=tmp_path / "residency" / "vllm", client=published.client())
    result = CliRunner().invoke(vllm_command, ["fetch", "1.0.0"])
    assert (result.exit_code, result.output) == (0, f"{source.root}\n")
    result = CliRunner().invoke(vllm_command, ["fetch"])
    assert result.exit_code == 2
    assert result.output.startswith("Error: give at least one release")
    result = CliRunner().invoke(vllm_command, ["fetch", "--source", str(tmp_path)])
    assert result.exit_code == 2
    assert "no vLLM there" in result.output


def test_the_releases_of_continuous_integration_are_fixed() -> None:
    """Reports name these three; another choice is a decision, not an accident."""
    assert releases() == CI_RELEASES == ("0.23.0", "0.24.0", "0.33.0")
