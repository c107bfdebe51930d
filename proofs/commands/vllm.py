"""``residency vllm``: fetch releases of vLLM, and list those at hand."""

from __future__ import annotations

from pathlib import Path

import click

from impl.vllm.launch.fetch import CI_RELEASES
from impl.vllm.launch.source import cache_folder, cached_releases, unpacked, unpacked_folder
from proofs.describe.visible import print_lines
from proofs.jobs.ending import PlainGroup
from proofs.run.targets import named_vllms
from spec.errors import InputError


@click.group("vllm", cls=PlainGroup)
def vllm() -> None:
    """Fetch sources of vLLM releases, or list them."""


@vllm.command("fetch")
@click.argument("release", nargs=-1)
@click.option(
    "--source",
    type=click.Path(path_type=Path),
    help="Use this checkout, site-packages folder or package folder instead of a release.",
)
@click.option("--ci", is_flag=True, help=f"Fetch {', '.join(CI_RELEASES)}.")
@click.option("--progress/--no-progress", default=True, help="Show a progress bar on a terminal.")
def fetch_command(
    *, release: tuple[str, ...], source: Path | None, ci: bool, progress: bool
) -> None:
    """Fetch each RELEASE unless it is there already, and print its import directory.

    The directory holds nothing but the package vllm; put it on PYTHONPATH.
    """
    wanted = dict.fromkeys((*release, *(CI_RELEASES if ci else ())))
    if not wanted and source is None:
        raise InputError("give at least one release, such as 0.33.0, or --ci, or --source DIR")
    folders = [] if source is None else [source]
    for releases, folder in [*(((name,), None) for name in wanted), *(((), f) for f in folders)]:
        (vllm,) = named_vllms(releases, folder, shows_progress=progress)
        print_lines(str(vllm.source.root))


@vllm.command("list")
def list_command() -> None:
    """List the releases in the cache: complete or not, digest of the archive, import directory."""
    cache = cache_folder()
    names = cached_releases(cache)
    if not names:
        print_lines(f"No release in {cache}; fetch one with: residency vllm fetch 0.33.0")
    for name in names:
        source = unpacked(cache, name)
        if source is None:
            folder = unpacked_folder(cache, name)
            print_lines(f"{name:<10} incomplete or changed; fetch it again  {folder}")
        else:
            print_lines(f"{name:<10} complete  {source.digest}  {source.root}")
