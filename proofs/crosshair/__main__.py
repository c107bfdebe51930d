"""``python -m proofs.crosshair``: explore every guard, print what was exhausted.

Exit code: 0 if all is well, 1 for a counterexample, 2 for wrong use, 3 if a required guard was not
exhausted, 5 if CrossHair failed or missed a canary.
"""

from __future__ import annotations

import click

from proofs.crosshair.explore import require_crosshair
from proofs.crosshair.runner import jobs, line_of, run
from proofs.describe.visible import print_lines
from proofs.jobs.ending import PlainCommand
from spec.verdict import INTERRUPTED_EXIT_CODE, Verdict, exit_code


@click.command(cls=PlainCommand, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> int:
    """Run CrossHair on the reference's integer guards.

    Free, both tolerance tests and overlap must be exhausted, and a copy of each that is wrong for
    one remote integer (its canary) must be found out. Other guards are listed.
    """
    require_crosshair()
    verdicts = []
    try:
        for report in run(jobs()):
            verdicts.append(report.verdict)
            flag = "" if report.verdict is Verdict.HELD else f"  <- {report.verdict.value}"
            print_lines(line_of(report) + flag)
    except KeyboardInterrupt:
        print_lines(f"interrupted after {len(verdicts)} of {len(jobs())} explorations")
        return INTERRUPTED_EXIT_CODE
    print_lines(
        f"{len(verdicts)} explorations, "
        f"{sum(verdict is Verdict.HELD for verdict in verdicts)} as they must be"
    )
    return exit_code(verdicts)


if __name__ == "__main__":
    main(prog_name="python -m proofs.crosshair")
