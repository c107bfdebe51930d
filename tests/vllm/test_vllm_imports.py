"""What is imported of a checkout: its source as it is, all of which is in the digest."""

from __future__ import annotations

import marshal
import os
import py_compile
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from impl.vllm.launch.source import from_directory, parsed
from proofs.run.targets import named_vllms, vllm_of
from spec.errors import InputError

ROOT = Path(__file__).parents[2]

IMPORTS = """
import sys
from importlib import import_module
from pathlib import Path
from impl.vllm.launch.imports import PackageFinder
from impl.vllm.launch.source import from_directory
source = from_directory(Path(sys.argv[1]), Path(sys.argv[2]))
sys.meta_path.insert(0, PackageFinder(source.root))
for name in sys.argv[3:]:
    try:
        module = import_module(name)
        print(name, getattr(module, "WHAT", "a package"))
    except ModuleNotFoundError as error:
        print(name, "is not there", error.name)
"""


LOADS = IMPORTS.replace("sys.meta_path.insert(0, PackageFinder(source.root))", "load(source)")
LOADS = LOADS.replace("imports import PackageFinder", "load import load")


def imported(folder: Path, *names: str, program: str = IMPORTS) -> list[str]:
    """What each module says of itself, imported in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder), str(folder.parent / "cache"), *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def digest(folder: Path) -> str:
    """The digest of a checkout."""
    found = from_directory(folder, folder.parent / "cache").digest
    assert found is not None
    return found


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A package with a module and a folder without ``__init__.py``."""
    package = tmp_path / "checkout" / "vllm"
    (package / "plain").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "module.py").write_text("WHAT = 'source'\n")
    (package / "plain" / "inner.py").write_text("WHAT = 'inner source'\n")
    return package.parent


def test_the_source_runs_and_not_byte_code_beside_it(checkout: Path) -> None:
    """Wrong: byte code that is marked as unchecked runs in place of the source that was digested.

    Nor is any written there: the checkout is not ours.
    """
    module = checkout / "vllm" / "module.py"
    before = digest(checkout)
    other = checkout.parent / "other.py"
    other.write_text("WHAT = 'hidden'\n")
    hidden = Path(cache_from_source(str(module)))
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(other), str(hidden), invalidation_mode=mode)
    py_compile.compile(str(other), str(checkout / "vllm" / "bare.pyc"), invalidation_mode=mode)
    names = ("vllm.module", "vllm.plain.inner", "vllm.bare", "vllm.none")
    for _ in range(2):  # Once compiled and once kept.
        assert imported(checkout, *names) == [
            "vllm.module source",
            "vllm.plain.inner inner source",
            "vllm.bare is not there vllm.bare",
            "vllm.none is not there vllm.none",
        ]
    assert [path.name for path in checkout.rglob("*.pyc")] == ["bare.pyc", hidden.name]
    assert digest(checkout) != before  # For what stands in no folder of byte code.
    (checkout / "vllm" / "bare.pyc").unlink()
    assert digest(checkout) == before


def test_an_edit_runs_though_time_and_size_are_as_before(checkout: Path) -> None:
    """Wrong: what was compiled before runs under the digest of other source."""
    module = checkout / "vllm" / "module.py"
    assert imported(checkout, "vllm.module") == ["vllm.module source"]
    state, before = module.stat(), digest(checkout)
    module.write_text("WHAT = 'edited'\n")
    os.utime(module, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert module.stat().st_size == state.st_size
    assert imported(checkout, "vllm.module") == ["vllm.module edited"]
    assert digest(checkout) != before


@pytest.mark.parametrize("harm", ["cut", "garbled", "another's"])
def test_a_damaged_file_of_what_was_compiled_is_made_anew(harm: str, checkout: Path) -> None:
    """Wrong: half a file that a kill left brings the interpreter down."""
    assert imported(checkout, "vllm.module") == ["vllm.module source"]
    files = [path for path in (checkout.parent / "cache").rglob("*") if path.is_file()]
    kept = [path for path in files if b"source" in path.read_bytes()]
    assert len(kept) == 1
    for path in kept:
        whole = path.read_bytes()
        other = marshal.dumps(compile("WHAT = 'other'", "", "exec"))
        harmed = {"cut": whole[:-9], "garbled": whole[:70] + b"\0" * 40, "another's": other}[harm]
        path.write_bytes(harmed)
        assert imported(checkout, "vllm.module") == ["vllm.module source"]
        assert path.read_bytes() == whole


def test_an_import_without_an_end_is_ended(checkout: Path) -> None:
    """Wrong: a loop on a module's top level hangs the command that imports it."""
    (checkout / "vllm" / "endless.py").write_text("while True:\n    pass\n")
    program = f"""{LOADS}
from impl.vllm.launch import load as loading
loading.SECONDS_OF_AN_IMPORT = 0.2
try:
    loading._loaded[0].find("endless", "x")
except loading.TimeLimitError as error:
    print(error)
"""
    said = imported(checkout, program=program)
    assert said == ["import of vllm.endless: no end after 0.2 s of computing"]


@pytest.mark.parametrize("beside", ["checkout", "link"])
def test_nothing_beside_the_package_is_found(beside: str, checkout: Path) -> None:
    """Wrong: a module that is in no digest takes the place of one that the run imports."""
    source = from_directory(checkout, checkout.parent / "cache")
    folder = checkout if beside == "checkout" else source.root
    (folder / "beside.py").write_text("WHAT = 'beside'\n")
    (folder / "vllm.py").write_text("WHAT = 'not the package'\n")
    assert imported(checkout, "vllm", "beside", program=LOADS) == [
        "vllm a package",
        "beside is not there beside",
    ]


def _linked_folder(checkout: Path) -> Path:
    outside = checkout.parent / "outside"
    outside.mkdir()
    (checkout / "vllm" / "linked").symlink_to(outside)
    (outside / "__init__.py").write_text("WHAT = 'outside'\n")
    assert imported(checkout, "vllm.linked") == ["vllm.linked outside"]
    return outside / "__init__.py"


def _linked_file(checkout: Path) -> Path:
    outside = checkout.parent / "outside.py"
    outside.write_text("")
    (checkout / "vllm" / "linked.py").symlink_to(outside)
    return outside


def _file_in_cache_folder(checkout: Path) -> Path:
    found = checkout / "vllm" / "__pycache__" / "code.py"
    found.parent.mkdir()
    found.write_text("WHAT = 'in the cache'\n")
    assert imported(checkout, "vllm.__pycache__.code")[0].startswith("vllm.__pycache__.code in")
    return found


@pytest.mark.parametrize("make", [_linked_folder, _linked_file, _file_in_cache_folder])
def test_all_that_can_be_imported_is_digested(make: Callable[[Path], Path], checkout: Path) -> None:
    """Wrong: code is changed where a link leads, and a report names the same digest."""
    code = make(checkout)
    before = digest(checkout)
    code.write_text(code.read_text() + "WHAT = 'changed'\n")
    assert digest(checkout) != before


def test_what_is_no_file_is_left_out_and_said(checkout: Path) -> None:
    """Wrong: a pipe in a checkout makes the command wait for ever, or goes unsaid."""
    package = checkout / "vllm"
    before = digest(checkout)
    os.mkfifo(package / "pipe.py")
    (package / "nowhere").symlink_to("nothing")
    (package / "circle").symlink_to("circle")
    (package / "device").symlink_to(os.devnull)
    with socket.socket(socket.AF_UNIX) as opened:
        here = Path.cwd()
        os.chdir(package)  # The whole path can be too long for one.
        opened.bind("socket")
        os.chdir(here)
        source = from_directory(checkout, checkout.parent / "cache")
    assert source.left_out == (
        "circle is a link that leads nowhere",
        "device is a pipe, a socket or a device",
        "nowhere is a link that leads nowhere",
        "pipe.py is a pipe, a socket or a device",
        "socket is a pipe, a socket or a device",
    )
    assert source.digest != before
    assert imported(checkout, "vllm.pipe") == ["vllm.pipe is not there vllm.pipe"]


def test_a_command_says_what_is_left_out(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong: nobody hears that a part of a checkout is in no digest."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(checkout.parent / "cache"))
    os.mkfifo(checkout / "vllm" / "a\n::error::b")
    for names in (lambda: named_vllms([], checkout), lambda: (vllm_of(str(checkout)),)):
        assert len(names()) == 1
        (line,) = capsys.readouterr().err.splitlines()
        what = "vllm: a ::error::b is a pipe, a socket or a device; it was not read"
        assert line.endswith(what)


def test_links_that_lead_back_end(checkout: Path) -> None:
    """Wrong: links make the digest take for ever, each folder being read by every path to it."""
    package = checkout / "vllm"
    for number in range(40):
        folder = package / f"d{number}"
        folder.mkdir()
        for name in ("left", "right"):
            (folder / name).symlink_to(package / f"d{(number + 1) % 40}")
    (package / "up").symlink_to(package)
    before = digest(checkout)
    assert digest(checkout) == before
    (package / "d3" / "code.py").write_text("")
    assert digest(checkout) != before


def test_a_link_to_everything_is_refused(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: a link to the root folder has the whole disk read."""
    monkeypatch.setattr("impl.vllm.launch.source._MOST_FILES", 50)
    outside = checkout.parent / "outside"
    outside.mkdir()
    for number in range(51):
        (outside / f"{number}").touch()
    (checkout / "vllm" / "linked").symlink_to(outside)
    with pytest.raises(InputError, match=r"more than 50 files.*link like linked/\d+ lead"):
        digest(checkout)


@pytest.mark.parametrize("harm", ["pipe", "deep", "bytes", "nowhere", "folder"])
def test_source_that_cannot_be_parsed_is_named_on_one_line(harm: str, checkout: Path) -> None:
    """Wrong: a pipe in the place of a module is waited for, or a traceback is shown."""
    file = checkout / "vllm" / "odd.py"
    if harm == "pipe":
        os.mkfifo(file)
    elif harm == "deep":
        file.write_text("x = " + "-" * 100_000 + "1\n")
    elif harm == "bytes":
        file.write_bytes(b"x = '\xff'\n")
    elif harm == "nowhere":
        file.symlink_to("nothing")
    else:
        file.mkdir()
    with pytest.raises(InputError, match=r"odd\.py: cannot be read as Python source") as refused:
        parsed(file)
    assert "\n" not in str(refused.value)
