"""A whole ``vllm serve`` line as arguments: what matters for the question, and all the rest.

People paste the line that they start an engine with. What does not matter is accepted and told, and
only a name close to one that matters is an error: a slip there would judge another engine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import click

from proofs.jobs.ending import PlainCommand
from proofs.settings.flags.known import ARGUMENTS
from proofs.settings.flags.other_flags import OTHER_FLAGS
from spec.errors import InputError
from spec.record.json_document import json_data

META = "residency.pasted"
"""Where a command finds what was pasted, in its context."""

_CLOSE = 0.85
"""From what likeness on a name is taken for a slip."""

_SECRET = re.compile(r"key|token$|password")

_TABLES = tuple(a.name.replace("_", "-") for a in ARGUMENTS if a.kind == "table")
"""Arguments whose entries can be given one by one, behind a dot."""


@dataclass
class Pasted:
    """A command line, taken apart.

    Attributes:
        options: what is an option here, in order.
        entries: entries of tables that were given behind a dot, by argument and name.
        ignored: what was not looked at: a flag with its values, or a word.
    """

    options: list[str] = field(default_factory=list)
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)


def close_to(name: str, names: Sequence[str]) -> str | None:
    """The known name that a name is probably a misspelling of."""
    plain = name.removeprefix("no-")
    if plain in OTHER_FLAGS:
        return None
    found = get_close_matches(plain, [n.removeprefix("no-") for n in names], 1, _CLOSE)
    return found[0] if found else None


class PastedCommand(PlainCommand):
    """A command that takes flags it does not know, and tells them from misspelt ones."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what is known; the rest is found in the context.

        Raises:
            click.NoSuchOption: a flag is none, and close to one that is known.
        """
        pasted = ctx.meta[META] = self._taken_apart(ctx, args)
        return super().parse_args(ctx, pasted.options)

    def _taken_apart(self, ctx: click.Context, args: Sequence[str]) -> Pasted:
        options: dict[str, bool] = {}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option):
                takes_value = not (param.is_flag or param.count)
                options.update(dict.fromkeys((*param.opts, *param.secondary_opts), takes_value))
        pasted, index = Pasted(), 0
        while index < len(args):
            if list(args[index : index + 2]) == ["vllm", "serve"]:
                # The command itself, and the model that it is about.
                index += 2
                index += index < len(args) and not _is_flag(args[index])
                continue
            index = self._take(pasted, options, args, index)
        return pasted

    def _take(
        self, pasted: Pasted, options: Mapping[str, bool], args: Sequence[str], index: int
    ) -> int:
        """Take one flag with its values, or one word; where the next begins."""
        flag, has_value, value = args[index].partition("=")
        if not _is_flag(flag):
            pasted.ignored.append(args[index])
            return index + 1
        if flag.startswith("--"):
            flag = flag.replace("_", "-")
        if flag in options:
            takes = options[flag] and not has_value and index + 1 < len(args)
            pasted.options.append(flag + has_value + value)
            pasted.options += args[index + 1 : index + 1 + takes]
            return index + 1 + takes
        end = index + 1
        while not has_value and end < len(args) and not _is_flag(args[end]):
            end += 1
        values = [value] if has_value else list(args[index + 1 : end])
        table, dot, entry = flag[2:].partition(".")
        if dot and table in _TABLES:
            _set(pasted.entries.setdefault(table.replace("-", "_"), {}), entry, " ".join(values))
            return end
        self._refuse_misspelt(flag, options)
        shown = "***" if _SECRET.search(table) and values else " ".join(values)
        pasted.ignored.append(f"{flag} {shown}".strip())
        return end

    @staticmethod
    def _refuse_misspelt(flag: str, options: Mapping[str, bool]) -> None:
        names = [name[2:] for name in options if name.startswith("--")]
        close = close_to(flag[2:].partition(".")[0], names) if flag.startswith("--") else None
        if close is not None:
            raise click.NoSuchOption(flag, possibilities=[f"--{close}"])


def _is_flag(word: str) -> bool:
    return re.match(r"--?[a-zA-Z]", word) is not None


def _set(table: dict[str, Any], path: str, text: str) -> None:
    """Set an entry, which is JSON or plain text; dots in its path are tables in tables."""
    *outer, last = path.replace("-", "_").split(".")
    for name in outer:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise InputError(f"{path}: {name} has entries, and is given a value of its own too")
    try:
        table[last] = json_data(text, path)
    except InputError:
        if text.startswith(("{", "[")):
            raise
        table[last] = text
