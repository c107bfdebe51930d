"""The command ``residency``."""

from __future__ import annotations

from typing import Any

import click

from proofs.check_command import check
from proofs.prove_command import INTERRUPTED_EXIT_CODE, prove_options, run_or_usage_error
from proofs.source.check import MAX_FEATURES
from proofs.source_command import prove_source
from proofs.vllm_command import vllm
from spec.errors import InputError

_SETTINGS = {"help_option_names": ["-h", "--help"]}


@click.group(context_settings=_SETTINGS)
@click.version_option(package_name="residency")
def main() -> None:
    """Prove, and disprove, that encoder outputs are still there when a drafter reads ahead.

    Exit codes of every command: 0 everything proved or held, 1 a claim refuted or violated, 2 wrong
    use or input, 3 unknown, 4 vacuous, 5 error or nothing done, 130 interrupted.
    """


@main.command("prove")
@prove_options
@click.option(
    "--source-of",
    metavar="RELEASE|DIR",
    help="Prove the claims on the source of this vLLM instead of on the rules. Takes --json only.",
)
@click.option(
    "--max-features",
    type=click.IntRange(1, MAX_FEATURES),
    default=MAX_FEATURES,
    show_default=True,
    help="With --source-of: features of a request at once. Fewer are quicker and prove less.",
)
@click.pass_context
def prove_command(
    context: click.Context, /, source_of: str | None, max_features: int, **options: Any
) -> None:
    """Prove the rules for all integers; or, with --source-of, a release's own source."""
    if source_of is None:
        context.exit(run_or_usage_error(**options))
    for name in ("groups", "claims", "junit_file", "smt2_folder", "show_ablations"):
        if options[name]:
            raise click.UsageError(f"--source-of does not take {name.split('_')[0]} options")
    try:
        code = prove_source(source_of, options["json_file"], max_features)
    except InputError as error:
        raise click.UsageError(str(error)) from None
    except KeyboardInterrupt:
        click.echo("interrupted: nothing is reported of a source that is half proved", err=True)
        code = INTERRUPTED_EXIT_CODE
    context.exit(code)


main.add_command(check)
main.add_command(vllm)
