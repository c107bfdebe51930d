"""``python -m proofs.crosshair``: explore every guard, print what was exhausted.

Exit code: 0 if all is well, 1 for a counterexample, 2 for wrong use, 3 if a required guard was not
exhausted, 5 if CrossHair failed or missed a canary.
"""

from __future__ import annotations

import sys

import click

from proofs.crosshair.explore import require_crosshair
from proofs.crosshair.runner import jobs, line_of, run
from spec.errors import InputError
from spec.verdict import Verdict, exit_code


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Run CrossHair on the reference's integer guards.

    Free, both tolerance tests and overlap must be exhausted, and a copy of each that is wrong for
    one remote integer (its canary) must be found out. Other guards are listed.
    """
    try:
        require_crosshair()
    except InputError as error:
        raise click.UsageError(str(error)) from None
    verdicts = []
    try:
        for report in run(jobs()):
            verdicts.append(report.verdict)
            flag = "" if report.verdict is Verdict.HELD else f"  <- {report.verdict.value}"
            click.echo(line_of(report) + flag)
    except KeyboardInterrupt:
        click.echo(f"interrupted after {len(verdicts)} of {len(jobs())} explorations")
        sys.exit(130)
    click.echo(
        f"{len(verdicts)} explorations, "
        f"{sum(verdict is Verdict.HELD for verdict in verdicts)} as they must be"
    )
    sys.exit(exit_code(verdicts))


if __name__ == "__main__":
    main(prog_name="python -m proofs.crosshair")
