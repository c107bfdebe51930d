"""The command ``residency``. Subcommands are imported when they are called: torch takes seconds."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

import click

from proofs.jobs.ending import PlainGroup


@dataclass(frozen=True)
class _Late:
    """Where a subcommand is, and the first sentence of its help, which its module says, too."""

    module: str
    name: str
    help: str


COMMANDS = {
    "ablate": _Late(
        "ablate",
        "ablate",
        "Decide which choices of guards are safe.",
    ),
    "bench": _Late("bench", "bench", "Measure how fast the loop is."),
    "claims": _Late("claims", "claims", "Show every claim, or all about one CLAIM."),
    "check": _Late("check", "check", "Check every claim and print what became of it."),
    "explore": _Late(
        "explore",
        "explore",
        "Explore every run of a small scope on the model.",
    ),
    "lint-config": _Late(
        "lint_config",
        "lint_config",
        "Prove whether these settings can stall an engine.",
    ),
    "prove": _Late(
        "prove",
        "prove_command",
        "Prove the rules, or with --source-of a release's source.",
    ),
    "replay": _Late("replay", "replay", "Run FILE once more and say which claims it breaks."),
    "report": _Late(
        "report",
        "report",
        "Write a page, a text and a test for each violation.",
    ),
    "sweep": _Late("sweep", "sweep", "Make the table of claims by release, runner and mode."),
    "vllm": _Late("vllm", "vllm", "Fetch sources of vLLM releases, or list them."),
}
"""The subcommands. The list of them is printed without an import of any."""


class _LateCommands(PlainGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        late = COMMANDS[cmd_name]
        module = import_module(f"proofs.commands.{late.module}")
        command: click.Command = getattr(module, late.name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        room = formatter.width - 6 - max(map(len, COMMANDS))
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, click.Command(name, help=COMMANDS[name].help).get_short_help_str(room))
                    for name in self.list_commands(ctx)
                ]
            )


@click.group(cls=_LateCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="residency")
def main() -> None:
    """Prove, and disprove, that encoder outputs are still there when a drafter reads ahead.

    Exit codes: 0 everything proved or held, 1 a claim refuted, 2 wrong use or input, 3 unknown, 4
    vacuous, 5 error or nothing done, 130 interrupted. What each means is in a command's own help.
    """
