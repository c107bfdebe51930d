"""Import the package ``vllm`` of one folder, and nothing else that lies there.

Python's own way is to put the folder on ``sys.path``, and to keep byte code in ``__pycache__``
beside the source. Then a module beside the package could be imported, and byte code that is marked
as unchecked would run in place of the source: both change a run, and neither is in the digest that
a report shows. Here only ``vllm`` is found, and only its source is run.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
)
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CodeType, ModuleType

from impl.vllm.launch.source import PACKAGE

_DIGEST_SIZE = hashlib.sha256().digest_size


class PackageFinder:
    """Finds ``vllm`` and its modules in one folder; a finder for ``sys.meta_path``.

    Args:
        root: the folder that holds the package.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._compiled = root.with_name(f"{root.name}.bytecode")
        self._finders: dict[str, FileFinder] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where a module is; ``None`` for one that is not of ``vllm``, or is not there.

        Raises:
            ModuleNotFoundError: there is only byte code of it, which the next finder would run.
        """
        if name == PACKAGE:
            folders: Sequence[str] = (str(self._root),)
        elif name.startswith(f"{PACKAGE}."):
            folders = tuple(path or ())
        else:
            return None
        without_init: list[str] = []
        for folder in folders:
            spec = self._finder(folder).find_spec(name)
            if spec is not None and spec.loader is not None:
                return spec
            if spec is not None:
                without_init += spec.submodule_search_locations or ()
        if not without_init:
            if PathFinder.find_spec(name, folders) is not None:
                raise ModuleNotFoundError(f"{name} has no source, only byte code", name=name)
            return None
        found = ModuleSpec(name, None, is_package=True)
        found.submodule_search_locations = without_init
        return found

    def invalidate_caches(self) -> None:
        """Forget what the folders held."""
        self._finders.clear()

    def _finder(self, folder: str) -> FileFinder:
        if folder not in self._finders:
            self._finders[folder] = FileFinder(
                folder,
                (ExtensionFileLoader, EXTENSION_SUFFIXES),
                (self._loader, SOURCE_SUFFIXES),  # type: ignore[arg-type]
            )
        return self._finders[folder]

    def _loader(self, name: str, path: str) -> SourceFileLoader:
        return _SourceLoader(name, path, self._compiled)


class _SourceLoader(SourceFileLoader):
    """Runs a module's source as it is now; what it was compiled to is kept for the same source."""

    def __init__(self, name: str, path: str, compiled: Path) -> None:
        super().__init__(name, path)
        key = f"{sys.implementation.cache_tag} {sys.flags.optimize} {path}"
        self._compiled = compiled / hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()

    def get_code(self, fullname: str) -> CodeType:
        """The code of the module's source."""
        path = self.get_filename(fullname)
        source = self.get_data(path)
        made_of = hashlib.sha256(MAGIC_NUMBER + source).digest()
        code = self._kept(made_of)
        if code is None:
            code = self.source_to_code(source, path)
            if not sys.dont_write_bytecode:
                self._keep(made_of, code)
        return code

    def _kept(self, made_of: bytes) -> CodeType | None:
        try:
            data = self._compiled.read_bytes()
        except OSError:
            return None
        head, checksum, body = (
            data[:_DIGEST_SIZE],
            data[_DIGEST_SIZE : 2 * _DIGEST_SIZE],
            data[2 * _DIGEST_SIZE :],
        )
        # A file that was cut short or damaged could bring the interpreter down.
        if head != made_of or hashlib.sha256(body).digest() != checksum:
            return None
        code: CodeType = marshal.loads(body)  # noqa: S302 -- what was written below
        return code

    def _keep(self, made_of: bytes, code: CodeType) -> None:
        body = marshal.dumps(code)
        with suppress(OSError):  # Where nothing can be kept, it is compiled each time.
            self._compiled.parent.mkdir(exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._compiled.parent, prefix=".")
            temporary = Path(name)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(made_of + hashlib.sha256(body).digest() + body)
                temporary.replace(self._compiled)
            finally:
                temporary.unlink(missing_ok=True)
