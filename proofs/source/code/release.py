"""A release's source, parsed and compiled piece by piece; nothing of it is imported.

Functions and classes are compiled from the file as they stand. Names that they use are resolved the
way their module would: other definitions of the same module, imports from the same package (again
parsed, not imported), the standard library and numpy. Only what touches tensors or the machine is
replaced, by the overrides that the caller gives; a name that nothing supplies stops the run as "not
modelled" and never passes as a proof.

To make a function its defaults and decorators are run, and the function itself is run on symbolic
integers: the code has the rights of this process. It is given no builtin and no module that reaches
files, processes or imports, which keeps accidents out, and no author who means harm.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MethodType
from typing import Any

from impl.vllm.launch.source import parsed
from proofs.symbolic.integers import NotModelled
from spec.errors import InputError

_REACHES_THE_MACHINE = {
    *("breakpoint", "compile", "eval", "exec", "exit", "globals", "help", "input", "locals"),
    *("open", "quit", "vars", "__import__", "SystemExit", "KeyboardInterrupt"),
}
_IMPORTABLE = {"numpy", "typing_extensions", *sys.stdlib_module_names} - {
    *("_thread", "asyncio", "builtins", "code", "ctypes", "http", "importlib", "io", "marshal"),
    *("multiprocessing", "nt", "os", "pathlib", "pickle", "posix", "runpy", "shutil", "signal"),
    *("socket", "subprocess", "sys", "tempfile", "urllib"),
}


def _import(name: str, *arguments: object, **named: object) -> object:
    """What numpy's own code imports at its first use, on behalf of the code that called it.

    Raises:
        NotModelled: a module that reaches the machine.
    """
    if name.partition(".")[0] not in _IMPORTABLE:
        raise NotModelled(f"the code imports {name}")
    return builtins.__import__(name, *arguments, **named)  # type: ignore[arg-type]


_BUILTINS = {
    name: value for name, value in vars(builtins).items() if name not in _REACHES_THE_MACHINE
} | {"__import__": _import}
"""What code under proof finds without a definition: neither files nor the process, and no imports
but those that numpy needs."""

_ANNOTATIONS_STAY_TEXT = __future__.annotations.compiler_flag


class ReleaseSource:
    """The files of one release.

    Args:
        overrides: replacements by name, in force in every module.
        changed: syntax trees to use instead of a file's own, by module name (for mutants).

    Raises:
        InputError: the folder is not a vLLM package.
    """

    def __init__(
        self,
        package: Path,
        overrides: Mapping[str, object],
        changed: Mapping[str, ast.Module] | None = None,
    ) -> None:
        if not (package / "v1" / "core").is_dir():
            raise InputError(
                f"{package}: no vLLM source here (no v1/core below it); name a release, or a "
                "checkout that has the folder vllm"
            )
        self.package = package
        self.overrides = dict(overrides)
        self.changed = dict(changed or {})
        self._modules: dict[str, SourceModule] = {}
        self._variants: dict[frozenset[str], ReleaseSource] = {}

    def with_change(self, module: str, tree: ast.Module) -> ReleaseSource:
        """The same release with one module's tree replaced; no file is parsed again."""
        changed = {**self._trees(), module: tree}
        return ReleaseSource(self.package, self.overrides, changed)

    def with_overrides(self, more: Mapping[str, object]) -> ReleaseSource:
        """The same release with more replaced; made once, and no file is parsed again."""
        key = frozenset(more)
        if key not in self._variants:
            self._variants[key] = ReleaseSource(
                self.package, {**self.overrides, **more}, self._trees()
            )
        return self._variants[key]

    def _trees(self) -> dict[str, ast.Module]:
        """Every syntax tree that is known: those given, and those parsed here or in a variant."""
        trees = dict(self.changed)
        for variant in self._variants.values():
            trees = variant._trees() | trees
        return {name: module.syntax for name, module in self._modules.items()} | trees

    def has_module(self, name: str) -> bool:
        """Whether the release has the module."""
        return self._path(name).is_file()

    def tree(self, name: str) -> ast.Module:
        """The module's syntax tree.

        Raises:
            InputError: the release has no such module, or it does not parse.
        """
        if name in self.changed:
            return self.changed[name]
        return parsed(self._path(name))

    def module(self, name: str) -> SourceModule:
        """The module, parsed once."""
        if name not in self._modules:
            self._modules[name] = SourceModule(self, name)
        return self._modules[name]

    def _path(self, name: str) -> Path:
        parts = name.split(".")[1:]
        path = self.package.joinpath(*parts)
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


class _Names(dict[str, Any]):
    """Globals of a module that are compiled or imported when they are first used."""

    def __init__(self, module: SourceModule) -> None:
        super().__init__(__builtins__=_BUILTINS, __name__=module.name)
        self._module = module

    def __missing__(self, name: str) -> object:
        if name in _BUILTINS:
            raise KeyError(name)
        value = self._module.resolve(name)
        self[name] = value
        return value


class SourceModule:
    """One module of a release."""

    def __init__(self, release: ReleaseSource, name: str) -> None:
        self._release = release
        self.name = name
        self.syntax = release.tree(name)
        self._names = _Names(self)
        self._methods: dict[tuple[str, str], Any] = {}

    def resolve(self, name: str) -> object:
        """The value of a module-level name.

        Raises:
            NotModelled: it is defined in a way that is not followed.
        """
        if name in self._release.overrides:
            return self._release.overrides[name]
        # The last definition at the top level is the one that stands when the module has run.
        for statement in reversed(self.syntax.body):
            match statement:
                case ast.FunctionDef(name=found) | ast.ClassDef(name=found) if found == name:
                    return self._execute(statement, name)
                case ast.Assign(targets=[ast.Name(id=found)]) if found == name:
                    return self._execute(statement, name)
                case _:
                    pass
        for node in ast.walk(self.syntax):
            match node:
                case ast.Import(names=aliases):
                    for alias in aliases:
                        if (alias.asname or alias.name) == name:
                            return self._import(alias.name)
                case ast.ImportFrom(module=str(origin), names=aliases, level=0):
                    for alias in aliases:
                        if (alias.asname or alias.name) == name:
                            return self._import_from(origin, alias.name)
                case _:
                    pass
        raise NotModelled(f"{self.name} uses the name {name}, which is not modelled")

    def value(self, name: str) -> Any:
        """The value of a module-level name, the same object each time: two enums never compare.

        Raises:
            NotModelled: it is defined in a way that is not followed.
        """
        return self.resolve(name) if name in _BUILTINS else self._names[name]

    def definition(self, class_name: str | None, function: str) -> ast.FunctionDef | None:
        """Syntax tree of a function, or of a method of a class, if the module has it."""
        body = self.syntax.body
        if class_name is not None:
            found = [n for n in body if isinstance(n, ast.ClassDef) and n.name == class_name]
            body = found[-1].body if found else []
        for node in reversed(body):
            if isinstance(node, ast.FunctionDef) and node.name == function:
                return node
        return None

    def parameters(self, class_name: str | None, function: str) -> tuple[str, ...]:
        """Names of a function's parameters; none if the module lacks the function."""
        node = self.definition(class_name, function)
        if node is None:
            return ()
        return tuple(argument.arg for argument in (*node.args.args, *node.args.kwonlyargs))

    def stand_in(self, class_name: str, **attributes: object) -> Any:
        """An object with the given attributes and, for the rest, the class's own methods."""
        return StandIn(self, class_name, attributes)

    def method(self, class_name: str, name: str) -> Any:
        """A method as the class defines it, unbound.

        Raises:
            NotModelled: the class has no such method.
        """
        if (class_name, name) not in self._methods:
            node = self.definition(class_name, name)
            if node is None:
                raise NotModelled(f"{class_name}.{name} is neither given nor a method of the class")
            self._methods[class_name, name] = self._execute(node, name, keep=False)
        return self._methods[class_name, name]

    def __getattr__(self, name: str) -> Any:
        """A module-level definition, compiled."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self._names[name]

    def _execute(self, node: ast.stmt, name: str, *, keep: bool = True) -> object:
        if isinstance(node, ast.ClassDef):
            # The body of a class looks its names up without asking for those that are missing.
            for used in _names_of_body(node) - _BUILTINS.keys():
                self._names[used]
        module = ast.Module([node], [])
        code = compile(module, self.name, "exec", flags=_ANNOTATIONS_STAY_TEXT, dont_inherit=True)
        place: dict[str, Any] = self._names if keep else {}
        exec(code, self._names, place)  # noqa: S102 - the source under proof is what we run
        return place[name]

    def _import(self, name: str) -> object:
        if name.split(".")[0] not in _IMPORTABLE:
            raise NotModelled(f"{self.name} imports {name}, which is not modelled")
        return importlib.import_module(name)

    def _import_from(self, origin: str, name: str) -> object:
        if origin.split(".")[0] in _IMPORTABLE:
            return getattr(importlib.import_module(origin), name)
        if origin.startswith("vllm.") and self._release.has_module(origin):
            return self._release.module(origin).value(name)
        raise NotModelled(f"{self.name} imports {name} from {origin}, which is not modelled")


def _names_of_body(node: ast.ClassDef) -> set[str]:
    """Names that running the class's body looks up, besides those that it defines."""
    run: list[ast.AST] = []
    defined: set[str] = set()
    for statement in node.body:
        match statement:
            case ast.FunctionDef(name=name, args=arguments, decorator_list=decorators):
                defined.add(name)
                run += [*decorators, *arguments.defaults]
                run += [default for default in arguments.kw_defaults if default is not None]
            case ast.AnnAssign(target=target, value=value):
                run += [target, *([] if value is None else [value])]
            case _:
                run.append(statement)
    names = [n for root in run for n in ast.walk(root) if isinstance(n, ast.Name)]
    defined |= {n.id for n in names if isinstance(n.ctx, ast.Store)}
    return {n.id for n in names} - defined


class StandIn:
    """An object that has some attributes of its own and the methods of a class of the source.

    Args:
        module: the class's module.
        attributes: what the object has; a method of the same name is not looked for.
    """

    def __init__(
        self, module: SourceModule, class_name: str, attributes: Mapping[str, object]
    ) -> None:
        self.__dict__.update(attributes)
        self.__dict__["_source"] = (module, class_name)

    def __getattr__(self, name: str) -> Any:
        """A method or property of the class."""
        if name.startswith("__"):
            raise AttributeError(name)
        module, class_name = self.__dict__["_source"]
        found = module.method(class_name, name)
        if isinstance(found, staticmethod):
            return found.__func__
        if isinstance(found, property):
            assert found.fget is not None
            return found.fget(self)
        return MethodType(found, self)
