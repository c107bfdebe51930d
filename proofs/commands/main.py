"""The command ``residency``. Subcommands are imported when they are called: torch takes seconds."""

from __future__ import annotations

from importlib import import_module

import click

from proofs.jobs.ending import PlainGroup

_COMMANDS = {
    "ablate": ("proofs.commands.ablate", "ablate"),
    "bench": ("proofs.commands.bench", "bench"),
    "claims": ("proofs.commands.claims", "claims"),
    "check": ("proofs.commands.check", "check"),
    "explore": ("proofs.commands.explore", "explore"),
    "lint-config": ("proofs.commands.lint_config", "lint_config"),
    "prove": ("proofs.commands.prove", "prove_command"),
    "replay": ("proofs.commands.replay", "replay"),
    "report": ("proofs.commands.report", "report"),
    "sweep": ("proofs.commands.sweep", "sweep"),
    "vllm": ("proofs.commands.vllm", "vllm"),
}
"""Module and name of each subcommand."""


class _LateCommands(PlainGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), name)
        return command


@click.group(cls=_LateCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="residency")
def main() -> None:
    """Prove, and disprove, that encoder outputs are still there when a drafter reads ahead.

    Exit codes of every command: 0 everything proved or held, 1 a claim refuted, 2 wrong use or
    input, 3 unknown, 4 vacuous, 5 error or nothing done, 130 interrupted.
    """
