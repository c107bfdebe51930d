"""The verdict on settings, and the smallest changes after which it is another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from proofs.settings.stuck.kinds import Stop, Unknown, longest_chunk
from proofs.settings.stuck.not_settled import OVERLAPPING, unknowns
from proofs.settings.stuck.passes import stand_still
from proofs.settings.stuck.settings import Settings
from proofs.settings.stuck.stops import stops
from spec.errors import InputError
from spec.rules.releases import NEWEST, ReleaseRules, rules_of
from spec.verdict import Verdict

_MOST = 1 << 40
"""Beyond any budget that an engine is given."""


@dataclass(frozen=True)
class Setup:
    """Settings under the rules of a scheduler, and what was left open about them from the start.

    Attributes:
        release: release of vLLM whose rules they are; ``None`` for nobody's.
        open_questions: what no theorem is about.
        item_limits: the limits on a prompt's items as they were given, kind by kind, and such ones
            for a single item; ``None`` where they were not given like that.
        remarks: what a person should know besides the verdict, a sentence each.
        unread: rules that are not known, though the settings depend on them, a sentence each.
        is_read: whether the rules were read in a source, so that all else is taken to be as in the
            newest release.
    """

    settings: Settings
    rules: ReleaseRules
    release: str | None
    open_questions: tuple[Unknown, ...] = ()
    item_limits: tuple[str, str] | None = None
    remarks: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    is_read: bool = False


@dataclass(frozen=True)
class Judgement:
    """What the theorems say of settings.

    Attributes:
        stops: stuck states that a prompt reaches, the smallest prompt first.
        unknowns: what is not settled.
    """

    stops: tuple[Stop, ...]
    unknowns: tuple[Unknown, ...]

    @property
    def verdict(self) -> Verdict:
        """REFUTED where a prompt stops, UNKNOWN where one might, PROVED where none can."""
        if self.stops:
            return Verdict.REFUTED
        return Verdict.UNKNOWN if self.unknowns else Verdict.PROVED


@dataclass(frozen=True)
class Change:
    """One setting, changed as little as it takes.

    Attributes:
        before: its value.
        after: the smallest value that does.
        verdict: the verdict after it.
    """

    setting: str
    before: object
    after: object
    setup: Setup
    verdict: Verdict


def judge(setup: Setup) -> Judgement:
    """What the theorems say.

    Raises:
        InputError: settings out of range, that contradict each other, or with which the release
            does not start.
    """
    setup.settings.validate()
    _require_block(setup.settings, setup.rules)
    found = stops(setup.settings, setup.rules)
    left_open = (*setup.open_questions, *unknowns(setup.settings, setup.rules))
    if setup.unread:
        guesses = (f"with {NEWEST}'s rules instead, {stop.name}: {stop.sentence}" for stop in found)
        unread = tuple(Unknown("rules-known", sentence) for sentence in (*setup.unread, *guesses))
        return Judgement((), (*unread, *left_open))
    reached = tuple(stop for stop in found if _is_reached(stop, setup))
    missed = (
        Unknown(
            OVERLAPPING,
            f"{stop.name}: {stop.sentence}; this is so with --no-async-scheduling, and its "
            "smallest prompt goes on where passes overlap",
        )
        for stop in found
        if stop not in reached
    )
    return Judgement(reached, (*missed, *left_open))


_REACHED_ANYHOW = ("item-never-fits", "padded-decode-above-threshold")
"""An item that never fits is refused whatever is in flight. Decodes are not run here; a padded one
that the threshold cuts was seen on the releases, with both ways of scheduling."""


def _is_reached(stop: Stop, setup: Setup) -> bool:
    """Whether an engine comes to the stuck state where its passes overlap, if they do.

    Rules that are no release's do not say who waits behind a request that can run no token: then
    several requests must come to it either way.
    """
    if stop.name in _REACHED_ANYHOW:
        return True
    rules = [setup.rules]
    if setup.release is None and len(stop.layout.prompts) > 1:
        rules = [replace(setup.rules, stalled_head_ends_pass=ends) for ends in (False, True)]
    elif not setup.settings.async_depth:
        return True
    return all(stand_still(stop.layout, setup.settings, choice) for choice in rules)


def _require_block(settings: Settings, rules: ReleaseRules) -> None:
    """A chunk holds a block, where the release asserts so at start-up (up to 0.25)."""
    most = longest_chunk(settings)
    if settings.block_alignment > most and not rules.runs_within_block:
        name = "threshold on long prefills" if most < settings.token_budget else "token budget"
        raise InputError(
            f"a {name} of {most} is less than a block of {settings.block_alignment} tokens, to "
            "which chunks are aligned; this release refuses to start (0.27 and later do not)"
        )


Steps: TypeAlias = tuple[Change, ...]
"""Changes that go together."""


def changes(setup: Setup) -> tuple[Steps, ...]:
    """What to change so that no stuck state is left, each judged again.

    Single settings, and others together with a threshold on long prefills that is switched off.
    Those after which the verdict is PROVED come first, and last those without the drafter.
    """
    found: list[Steps] = [
        (change,) for make in _CHANGES for change in make(setup) if not _stops(change)
    ]
    alone = {steps[0].setting for steps in found}
    for off in _no_threshold(setup):
        if _stops(off):
            more = [change for make in _CHANGES for change in make(off.setup)]
            found += [(off, c) for c in more if not _stops(c) and c.setting not in alone]
    return tuple(sorted(found, key=_rank))


def _rank(steps: Steps) -> tuple[bool, bool]:
    drops_drafter = any(change.setting in ("shift", "num_drafts") for change in steps)
    return steps[-1].verdict is not Verdict.PROVED, drops_drafter


def _stops(change: Change) -> bool:
    return change.verdict is Verdict.REFUTED


def _verdict(setup: Setup) -> Verdict:
    try:
        return judge(setup).verdict
    except InputError:
        return Verdict.ERROR


def _with(setup: Setup, settings: Settings) -> Setup:
    return replace(setup, settings=settings)


def _raised(
    setup: Setup, name: str, value: int, with_value: Callable[[int], Settings]
) -> Iterator[Change]:
    """The smallest larger value with which nothing stops, if there is one."""

    def stops_with(tokens: int) -> bool:
        return _verdict(_with(setup, with_value(tokens))) in (Verdict.REFUTED, Verdict.ERROR)

    low, high = value, max(2 * value, 1)
    while stops_with(high):
        if high > _MOST:
            return
        low, high = high, 2 * high
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if stops_with(middle) else (low, middle)
    after = _with(setup, with_value(high))
    yield Change(name, value, high, after, _verdict(after))


def _to(setup: Setup, name: str, before: object, after: object, changed: Setup) -> Iterator[Change]:
    verdict = _verdict(changed)
    if verdict is not Verdict.ERROR:
        yield Change(name, before, after, changed, verdict)


def _cache_size(setup: Setup) -> Iterator[Change]:
    settings = setup.settings
    if not settings.sizes_follow_budget:
        size = settings.cache_size
        yield from _raised(
            setup, "cache_size", size, lambda rows: replace(settings, cache_size=rows)
        )


def _encoder_budget(setup: Setup) -> Iterator[Change]:
    settings = setup.settings
    if not settings.sizes_follow_budget:
        yield from _raised(
            setup,
            "encoder_budget",
            settings.encoder_budget,
            lambda rows: replace(settings, encoder_budget=rows),
        )


def _token_budget(setup: Setup) -> Iterator[Change]:
    settings = setup.settings
    yield from _raised(setup, "token_budget", settings.token_budget, settings.with_token_budget)


def _threshold(setup: Setup) -> Iterator[Change]:
    settings = setup.settings
    if settings.threshold:
        yield from _raised(
            setup,
            "threshold",
            settings.threshold,
            lambda tokens: replace(settings, threshold=tokens),
        )
        yield from _no_threshold(setup)


def _no_threshold(setup: Setup) -> Iterator[Change]:
    settings = setup.settings
    if settings.threshold:
        off = _with(setup, replace(settings, threshold=0))
        yield from _to(setup, "threshold", settings.threshold, 0, off)


def _release(setup: Setup) -> Iterator[Change]:
    if setup.release is not None and setup.release != NEWEST:
        newer = replace(setup, rules=rules_of(NEWEST), release=NEWEST)
        yield from _to(setup, "release", setup.release, NEWEST, newer)


def _whole_items(setup: Setup) -> Iterator[Change]:
    if setup.settings.whole_items:
        off = _with(setup, replace(setup.settings, whole_items=False))
        yield from _to(setup, "whole_items", True, False, off)


def _modules(setup: Setup) -> Iterator[Change]:
    settings = setup.settings
    if settings.shift > 1:
        shifted = _with(setup, replace(settings, shift=1))
        yield from _to(setup, "shift", settings.shift, 1, shifted)
    if settings.shift:
        none = _with(setup, replace(settings, shift=0, num_drafts=0))
        yield from _to(setup, "shift", settings.shift, 0, none)


def _drafts(setup: Setup) -> Iterator[Change]:
    settings = setup.settings
    if settings.num_drafts and not settings.shift:
        none = _with(setup, replace(settings, num_drafts=0))
        yield from _to(setup, "num_drafts", settings.num_drafts, 0, none)


def _items(setup: Setup) -> Iterator[Change]:
    settings = setup.settings
    if settings.items_per_prompt is None or settings.items_per_prompt > 1:
        single = _with(setup, replace(settings, items_per_prompt=1))
        yield from _to(setup, "items_per_prompt", settings.items_per_prompt, 1, single)


_CHANGES = (
    _threshold,
    _cache_size,
    _encoder_budget,
    _token_budget,
    _release,
    _whole_items,
    _items,
    _modules,
    _drafts,
)
"""What a user can change, what costs least first."""
