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
import hashlib
import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType, MethodType
from typing import Any

from impl.vllm.launch.source import parsed
from proofs.source.code.reads import Read, Reads
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


class _Parsed:
    """The files of a package, each parsed once, and what was compiled of them so far."""

    def __init__(self) -> None:
        self._trees: dict[Path, ast.Module] = {}
        # The nodes are kept, so that their identifiers stay their own.
        self._code: dict[int, tuple[ast.stmt, CodeType]] = {}
        self._digests: dict[int, tuple[ast.AST, str]] = {}

    def tree(self, path: Path) -> ast.Module:
        """A file's syntax tree.

        Raises:
            InputError: there is no such file, or it does not parse.
        """
        if path not in self._trees:
            self._trees[path] = parsed(path)
        return self._trees[path]

    def code(self, node: ast.stmt, name: str) -> CodeType:
        """A definition, compiled for the module of that name."""
        if id(node) not in self._code:
            module = ast.Module([node], [])
            code = compile(module, name, "exec", flags=_ANNOTATIONS_STAY_TEXT, dont_inherit=True)
            self._code[id(node)] = (node, code)
        return self._code[id(node)][1]

    def digest(self, node: ast.AST) -> str:
        """A digest of a statement or an expression, without comments and line numbers."""
        if id(node) not in self._digests:
            digest = hashlib.sha256(ast.dump(node).encode()).hexdigest()
            self._digests[id(node)] = (node, digest)
        return self._digests[id(node)][1]


class ReleaseSource:
    """The files of one release.

    Args:
        overrides: replacements by name, in force in every module.
        changed: syntax trees to use instead of a file's own, by module name (for mutants).
        reads: is told of everything that is looked up.
        known: what was parsed and compiled for another one of the same package.

    Raises:
        InputError: the folder is not a vLLM package.
    """

    def __init__(
        self,
        package: Path,
        overrides: Mapping[str, object],
        changed: Mapping[str, ast.Module] | None = None,
        reads: Reads | None = None,
        known: _Parsed | None = None,
    ) -> None:
        if not (package / "v1" / "core").is_dir():
            raise InputError(
                f"{package}: no vLLM source here (no v1/core below it); name a release, or a "
                "checkout that has the folder vllm"
            )
        self.package = package
        self.overrides = dict(overrides)
        self.changed = dict(changed or {})
        self.reads = Reads() if reads is None else reads
        self.parsed = _Parsed() if known is None else known
        self._modules: dict[str, SourceModule] = {}
        self._variants: dict[frozenset[str], ReleaseSource] = {}

    def with_change(self, module: str, tree: ast.Module) -> ReleaseSource:
        """The same release with one module's tree replaced; no file is parsed again."""
        changed = {**self.changed, module: tree}
        return ReleaseSource(self.package, self.overrides, changed, known=self.parsed)

    def with_overrides(self, more: Mapping[str, object]) -> ReleaseSource:
        """The same release with more replaced; made once, and no file is parsed again."""
        key = frozenset(more)
        if key not in self._variants:
            self._variants[key] = ReleaseSource(
                self.package, {**self.overrides, **more}, self.changed, self.reads, self.parsed
            )
        return self._variants[key]

    def watched(self, reads: Reads) -> ReleaseSource:
        """The same release as nothing has looked at it yet, for one question; parsed once."""
        return ReleaseSource(self.package, self.overrides, self.changed, reads, self.parsed)

    def has_module(self, name: str) -> bool:
        """Whether the release has the module."""
        self.reads.add("module", name)
        return self._path(name).is_file()

    def tree(self, name: str) -> ast.Module:
        """The module's syntax tree.

        Raises:
            InputError: the release has no such module, or it does not parse.
        """
        return self.changed[name] if name in self.changed else self.parsed.tree(self._path(name))

    def module(self, name: str) -> SourceModule:
        """The module, parsed once."""
        if name not in self._modules:
            self._modules[name] = SourceModule(self, name)
        return self._modules[name]

    def digest_of(self, read: Read) -> str:
        """What the release has where something was read: a digest of it, or words for none."""
        kind, name, *names = read
        if not self.has_module(name):
            return "no such module"
        if kind == "module":
            return "a module"
        try:
            module = self.module(name)
        except InputError:
            return "not readable"
        if kind == "name":
            return module.digest_of_name(*names)
        class_name, function, *called = names
        if kind == "calls":
            return module.digest_of_calls(class_name or None, function, *called)
        return module.digest_of_definition(class_name or None, function)

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
        self._release.reads.add("name", self.name, name)
        match self._found(name):
            case ast.stmt() as statement:
                return self._execute(statement, name)
            case (origin, None):
                return self._import(origin)
            case (origin, str(attribute)):
                return self._import_from(origin, attribute)
        raise NotModelled(f"{self.name} uses the name {name}, which is not modelled")

    def _found(self, name: str) -> ast.stmt | tuple[str, str | None] | None:
        """The statement that defines a name, or the module and the name in it of its import."""
        # The last definition at the top level is the one that stands when the module has run.
        for statement in reversed(self.syntax.body):
            match statement:
                case ast.FunctionDef(name=found) | ast.ClassDef(name=found) if found == name:
                    return statement
                case ast.Assign(targets=[ast.Name(id=found)]) if found == name:
                    return statement
                case _:
                    pass
        for node in ast.walk(self.syntax):
            match node:
                case ast.Import(names=aliases):
                    for alias in aliases:
                        if (alias.asname or alias.name) == name:
                            return alias.name, None
                case ast.ImportFrom(module=str(origin), names=aliases, level=0):
                    for alias in aliases:
                        if (alias.asname or alias.name) == name:
                            return origin, alias.name
                case _:
                    pass
        return None

    def digest_of_name(self, name: str) -> str:
        """A digest of what a name stands for in the module."""
        found = self._found(name)
        return self._release.parsed.digest(found) if isinstance(found, ast.stmt) else repr(found)

    def digest_of_definition(self, class_name: str | None, function: str) -> str:
        """A digest of a function, or of a method of a class."""
        found = self.definition(class_name, function)
        return "absent" if found is None else self._release.parsed.digest(found)

    def digest_of_calls(self, class_name: str | None, function: str, called: str) -> str:
        """A digest of the calls of a method within a function."""
        calls = self.calls(class_name, function, called)
        return repr([self._release.parsed.digest(call) for call in calls])

    def value(self, name: str) -> Any:
        """The value of a module-level name, the same object each time: two enums never compare.

        Raises:
            NotModelled: it is defined in a way that is not followed.
        """
        return self.resolve(name) if name in _BUILTINS else self._names[name]

    def definition(self, class_name: str | None, function: str) -> ast.FunctionDef | None:
        """Syntax tree of a function, or of a method of a class, if the module has it.

        A method may stand in a base of the class, if the base stands in the module.
        """
        self._release.reads.add("definition", self.name, class_name or "", function)
        return self._defined(class_name, function)

    def calls(self, class_name: str | None, function: str, called: str) -> tuple[ast.Call, ...]:
        """Calls of a method of any object within a function; nothing else of it is read."""
        self._release.reads.add("calls", self.name, class_name or "", function, called)
        node = self._defined(class_name, function)
        nodes = () if node is None else ast.walk(node)
        return tuple(n for n in nodes if isinstance(n, ast.Call) and _is_method(n, called))

    def _defined(self, class_name: str | None, function: str) -> ast.FunctionDef | None:
        if class_name is None:
            return _function_in(self.syntax.body, function)
        classes = {n.name: n for n in self.syntax.body if isinstance(n, ast.ClassDef)}
        return _method_of(class_name, function, classes)

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
        code = self._release.parsed.code(node, self.name)
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


def _is_method(call: ast.Call, name: str) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == name


def _function_in(body: Sequence[ast.stmt], name: str) -> ast.FunctionDef | None:
    for node in reversed(body):  # Python keeps the last definition of a name.
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    return None


def _method_of(
    class_name: str, method: str, classes: Mapping[str, ast.ClassDef]
) -> ast.FunctionDef | None:
    """The method of a class or of the first base that has it, the bases of a base before the next.

    That is Python's own order unless two bases share one.
    """
    left = [class_name]
    seen: set[str] = set()
    while left:
        name = left.pop(0)
        if name in seen or name not in classes:
            continue
        seen.add(name)
        owner = classes[name]
        found = _function_in(owner.body, method)
        if found is not None:
            return found
        left[:0] = [base.id for base in owner.bases if isinstance(base, ast.Name)]
    return None


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
