"""The story of a run: numbered sentences in small integers that end in the contradiction."""

from __future__ import annotations

from dataclasses import dataclass

from proofs.describe.words import counted
from proofs.report.story.conditions import ASKED_FOR, Condition
from proofs.report.story.timeline import Gap, RequestTrack, StepRow, Timeline
from spec.record.run_findings import LoopFinding
from spec.record.scenario import Scenario

_MOST_SENTENCES = 26


@dataclass(frozen=True)
class Sentence:
    """One sentence, without its full stop.

    Attributes:
        text: what happened.
        because: why; empty where nothing decided it.
        step: index of the step in the trace; ``None`` where it is about no step.
        is_bad: whether it is part of what goes wrong.
    """

    text: str
    because: str = ""
    step: int | None = None
    is_bad: bool = False


def story_of(
    finding: LoopFinding,
    scenario: Scenario,
    timeline: Timeline,
    conditions: tuple[Condition, ...],
) -> tuple[Sentence, ...]:
    """The whole story.

    Args:
        finding: the violation.
        scenario: what was run.
        timeline: its picture.
        conditions: the parts of the claim, the last of which is false.
    """
    sentences = _tell_rows(timeline)
    left_out = len(sentences) - _MOST_SENTENCES
    if left_out > 0:
        gap = Sentence(f"({left_out} sentences are left out here; the table has them all)")
        first = _MOST_SENTENCES // 4
        sentences = [*sentences[:first], gap, *sentences[first + left_out :]]
    return (*_tell_start(scenario, timeline), *sentences, _tell_end(finding, timeline, conditions))


def _tell_start(scenario: Scenario, timeline: Timeline) -> list[Sentence]:
    """What is given: prompts, then sizes."""
    config = scenario.config
    given = [_tell_prompt(track, timeline) for track in timeline.tracks]
    given = [clause[0].upper() + clause[1:] for clause in given]
    if timeline.num_hidden_requests:
        given.append(
            f"{counted(timeline.num_hidden_requests, 'further request')} that have nothing to do "
            "with it are left out"
        )
    sizes = [
        f"a pass runs at most {counted(config.max_num_batched_tokens, 'token')}",
        f"the encoder cache holds {counted(config.encoder_cache_size, 'row')}",
    ]
    if config.gather_lookahead:
        sizes.append(f"the drafter reads {counted(config.gather_lookahead, 'token')} ahead")
    if config.scheduler_lookahead:
        sizes.append(f"the scheduler looks {counted(config.scheduler_lookahead, 'token')} ahead")
    if config.whole_items:
        sizes.append("items are not to be split")
    if config.long_prefill_token_threshold:
        limit = counted(config.long_prefill_token_threshold, "token")
        sizes.append(f"a chunk of a prompt has at most {limit}")
    if config.block_alignment:
        sizes.append(f"chunks end at multiples of {config.block_alignment}")
    if config.async_depth:
        sizes.append(f"{counted(config.async_depth, 'pass', 'passes')} are scheduled ahead")
    text = "; ".join(sizes)
    return [*(Sentence(clause) for clause in given), Sentence(text[0].upper() + text[1:])]


def _tell_prompt(track: RequestTrack, timeline: Timeline) -> str:
    alone = len(timeline.tracks) == 1 and not timeline.num_hidden_requests
    subject = "the request's prompt" if alone else f"the prompt of request {track.request}"
    at = "" if timeline.is_encoder_decoder else " at "
    items = [
        f"{timeline.entries[bar.entry].letter}{at}[{bar.span.start},{bar.span.end})"
        + (
            f" with {counted(bar.num_rows, 'row')}"
            if bar.num_rows < bar.span.end - bar.span.start
            else ""
        )
        for bar in track.bars
    ]
    if track.num_hidden_bars:
        items.append(f"{track.num_hidden_bars} more items")
    tokens = counted(track.num_prompt_tokens, "token")
    if timeline.is_encoder_decoder and items:
        return f"{subject} has {tokens} of text, and its encoder takes {' and '.join(items)}"
    held = f" and holds {' and '.join(items)}" if items else " of text"
    return f"{subject} has {tokens}{held}"


def _tell_rows(timeline: Timeline) -> list[Sentence]:
    sentences: list[Sentence] = []
    for row in timeline.rows:
        if isinstance(row, Gap):
            sentences.append(Sentence(f"({counted(row.num_steps, 'step')} are left out)"))
            continue
        if row.kind == "event" and row.title.endswith(" arrives") and row.number < _start(timeline):
            continue
        if row.repeats is not None:
            text = f"{_title(row)} does just what pass {row.repeats} did"
            sentences.append(Sentence(text, step=row.number))
            continue
        for reason in row.reasons:
            if reason.is_detail:
                continue
            sentences.append(
                Sentence(f"{_title(row)}: {reason.text}", reason.because, row.number, reason.is_bad)
            )
    return sentences


def _start(timeline: Timeline) -> int:
    """The first pass: requests that are there from the start need no sentence of their own."""
    return next((r.number for r in timeline.rows if isinstance(r, StepRow) and r.kind == "pass"), 0)


def _title(row: StepRow) -> str:
    if row.kind == "event":
        return f"Before pass {row.pass_index}"
    return row.title[0].upper() + row.title[1:]


def _tell_end(
    finding: LoopFinding, timeline: Timeline, conditions: tuple[Condition, ...]
) -> Sentence:
    row = timeline.rows[timeline.contradiction]
    assert isinstance(row, StepRow)
    asked = conditions[-1].text
    if asked.startswith(ASKED_FOR):
        asked = f"for this: {asked.removeprefix(ASKED_FOR)}; and seen is: {finding.observed}"
    else:
        asked = f"that {asked}"
    lasso = "" if timeline.lasso is None else f"{timeline.lasso.text}. "
    lasso = lasso[:1].upper() + lasso[1:]
    return Sentence(
        f"{lasso}However, {finding.claim} asks {asked}. A contradiction, in {row.title}",
        step=row.number,
        is_bad=True,
    )
