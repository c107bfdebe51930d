"""``residency explore``: everything that can happen in a small scope."""

from __future__ import annotations

from pathlib import Path

import click

from proofs.commands.files import file_options
from proofs.commands.options import claim_ids, claims_option
from proofs.describe.visible import print_lines
from proofs.dossiers.exploration import publish_exploration
from proofs.explore.exploration_text import print_report
from proofs.explore.scope import SCOPES
from proofs.explore.search import ExploreSettings, run_exploration
from proofs.jobs.ending import PlainCommand
from proofs.jobs.terminal import interrupts, progress_bar
from proofs.results.publish import MachineFiles


@click.command("explore", cls=PlainCommand)
@click.option(
    "--scope",
    default="default",
    show_default=True,
    help=f"What to explore: {', '.join(SCOPES)}. full takes hours: give --resume.",
)
@click.option("--fault", help="Explore the model and the reference with this named fault.")
@claims_option
@click.option(
    "--lockstep",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Run the reference too in every Nth case: 1 for all, 0 for none.",
)
@click.option(
    "--relation",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Check every Nth case against the relation that the unbounded proofs are about: 1 for "
    "all, 0 for none.",
)
@click.option(
    "--workers", type=click.IntRange(min=1), default=2, show_default=True, help="Processes at once."
)
@click.option(
    "--resume",
    "resume_folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep finished jobs in this folder, and do not do again those that it holds, unless "
    "another version of this program finished them.",
)
@file_options(report="Write a report on each shortest counterexample into this folder.")
def explore(
    *,
    scope: str,
    fault: str | None,
    claims: str | None,
    lockstep: int,
    relation: int,
    workers: int,
    resume_folder: Path | None,
    files: MachineFiles,
) -> int:
    """Explore every run of a small scope on the model.

    Every case is explored with all choices within a run. A case is a layout of prompts under a
    configuration. Layouts have at most two requests with
    two items each, of one or two tokens, and one request of text alone, in every arrangement.
    Configurations cover every pair of settings: small layouts are run under each of them, most of
    two requests under some or one. --scope full has more.

    Choices within a run are how many drafts are accepted, when each request arrives, and at most
    one abort, reset or failed load. The reference runs the same rounds, each round is laid against
    the relation of the unbounded proofs, and each counterexample is replayed on the reference
    before it is shown.

    Exits 0 when all claims hold in the whole scope, 1 when one is refuted, 2 for wrong input, 4
    when a premise never happened, 5 when the reference and the model disagree or a round lies
    outside the relation of the proofs, and 130 after Ctrl-C.
    """
    settings = ExploreSettings(
        scope=scope,
        fault=fault,
        claims=claim_ids(claims),
        lockstep=lockstep,
        relation=relation,
        workers=workers,
        resume=resume_folder,
    )
    files.require_writable()
    with progress_bar() as report_progress, interrupts() as interrupted:
        report = run_exploration(
            settings, report_progress, interrupted, lambda line: print_lines(line, err=True)
        )
    print_report(report)
    return publish_exploration(report, files)
