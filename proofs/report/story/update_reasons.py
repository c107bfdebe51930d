"""What an update or an event did and why: progress, references that went, others that stayed."""

from __future__ import annotations

from proofs.report.story.reasons import Before, Reason, Words, rows_of, tokens_of
from spec.record.steps import EventSeen, RequestOutcome, UpdateSeen

_EVENTS = {
    "arrival": "{} arrives",
    "abort": "{} is aborted",
    "continuation": "{} gets its next input",
    "close": "{} gets no further input",
    "reset": "the encoder cache is reset",
}


def event_reasons(step: EventSeen, before: Before, words: Words) -> tuple[Reason, ...]:
    """What came from outside.

    Args:
        step: the event.
        before: the state before it.
        words: names.
    """
    text = _EVENTS[step.event].format(words.request(step.request))
    if step.event == "arrival":
        items = " ".join(
            words.item(step.request, index) for index in range(len(words.features(step.request)))
        )
        tokens = next((s.num_tokens for s in step.state.requests if s.request == step.request), 0)
        text += f" with {items or 'text'} of {tokens_of(tokens)}"
    return (Reason(text), *_tell_error(step))


def update_reasons(step: UpdateSeen, before: Before, words: Words) -> tuple[Reason, ...]:
    """What the result of a pass did.

    Args:
        step: the update.
        before: the state before it.
        words: names.
    """
    reasons: list[Reason] = []
    for outcome in step.outcomes:
        reasons += _tell_outcome(outcome, words)
        if outcome.rewound is None and not outcome.dropped:
            reasons += _tell_references(step, outcome, before, words)
    if words.config.is_encoder_decoder:
        reasons += _tell_credits(step, before, words)
    return (*reasons, *_tell_error(step))


def _tell_outcome(outcome: RequestOutcome, words: Words) -> list[Reason]:
    subject = words.request(outcome.request)
    if outcome.rewound is not None:
        return [
            Reason(
                f"{subject} falls back to {outcome.rewound}",
                "its KV could not be loaded",
                f"R{outcome.request} falls to {outcome.rewound}",
            )
        ]
    if outcome.dropped:
        return [Reason(f"the output of {subject} is dropped")]
    if outcome.num_emitted:
        return [Reason(f"{subject} emits {tokens_of(outcome.num_emitted)}", is_detail=True)]
    return []


def _tell_references(
    step: UpdateSeen, outcome: RequestOutcome, before: Before, words: Words
) -> list[Reason]:
    """Which references of a request went by its progress, and which stayed."""
    request = outcome.request
    state = before.request(request)
    after = next((seen for seen in step.state.requests if seen.request == request), None)
    if state is None or after is None:
        return []
    if after.status != "running":
        held = [name for name, holders in before.state.book.references if request in holders]
        if not held:
            return []
        names = " and ".join(words.letters[name] for name in held)
        end = "ends" if after.status == "finished" else f"is {after.status}"
        unlike = _unlike_rows(request, held, before, words)
        return [
            Reason(
                f"{words.request(request)} {end} and lets go of {names}",
                unlike,
                f"R{request} lets go of {names}",
                is_bad=bool(unlike),
                request=request,
            )
        ]
    rejected = before.batches.get((step.index, request), 0) - outcome.num_accepted
    progress = state.num_computed_tokens - state.num_output_placeholders
    if not state.num_output_placeholders:
        progress -= max(rejected, 0)
    return _tell_kept(step, request, progress, before, words)


def _unlike_rows(request: int, held: list[str], before: Before, words: Words) -> str:
    """That the request knows an entry with another number of rows, where it does."""
    for feature in words.features(request):
        stored = before.entry_rows.get(feature.identifier)
        if feature.identifier in held and stored not in (None, feature.num_rows):
            letter = words.letters[feature.identifier]
            rows = rows_of(feature.num_rows)
            return f"it ends; its own {letter} has {rows}, and the entry has {stored}"
    return ""


def _tell_kept(
    step: UpdateSeen, request: int, progress: int, before: Before, words: Words
) -> list[Reason]:
    held_before = {name for name, held in before.state.book.references if request in held}
    held_after = {name for name, held in step.state.book.references if request in held}
    features = words.features(request)
    reasons = []
    for index, feature in enumerate(features):
        name, letter = feature.identifier, words.letter(request, index)
        if name not in held_before or feature.offset >= progress:
            continue
        test = f"{feature.offset} + {feature.length} <= {progress}"
        named = f"offset {feature.offset} + length {feature.length} <= progress {progress}"
        later = [other for other in features[index + 1 :] if other.identifier == name]
        if name not in held_after:
            if feature.end <= progress and not any(other.end <= progress for other in later):
                reasons.append(
                    Reason(
                        f"the reference to {letter} goes",
                        f"{named} is true: progress has passed its end",
                        f"{letter} goes: {test}",
                    )
                )
            elif feature.end > progress:
                reasons.append(
                    Reason(
                        f"the reference to {letter} goes although {words.item(request, index)} is "
                        "not used up",
                        f"{named} is false",
                        f"{letter} let go; {test} false",
                        is_bad=True,
                    )
                )
        elif feature.end > progress:
            reasons.append(
                Reason(
                    f"the reference to {letter} stays",
                    f"{named} is false",
                    f"{letter} to go? {test} false",
                )
            )
        elif not any(other.end > progress for other in later):
            more = progress - feature.end + 1
            offset, length = feature.offset, feature.length
            reasons.append(
                Reason(
                    f"{words.item(request, index)} is used up ({named} is true), and still its "
                    "reference stays",
                    f"it waits for {'one more token' if more == 1 else f'{more} more tokens'}, and "
                    f"offset {offset} + length {length} + margin {more} <= progress {progress} is "
                    "false",
                    f"{letter} to go? {offset} + {length} + {more} <= {progress} false",
                    is_bad=True,
                )
            )
    return reasons


def _tell_credits(step: UpdateSeen, before: Before, words: Words) -> list[Reason]:
    """Slots of the encoder-decoder book that were given back, once or again."""
    gained = step.state.book.num_free_slots - before.state.book.num_free_slots
    reasons = []
    held = dict(before.items_held)
    for call in step.calls:
        if call.method == "free_encoder_input":
            keys = [(call.request, call.feature)]
        elif call.method == "free":
            keys = [(call.request, index) for index in range(len(words.features(call.request)))]
        else:
            continue
        for key in keys:
            rows, letter = words.rows(*key), words.letter(*key)
            if held.pop(key, None) is not None:
                reasons.append(
                    Reason(
                        f"{letter} gives its {rows_of(rows)} back",
                        "cross-attention has read it",
                        f"credit {letter}: +{rows}",
                    )
                )
                gained -= rows
            elif gained >= rows > 0:
                reasons.append(
                    Reason(
                        f"{letter} is credited again: free slots rise by {rows}",
                        f"{letter} was credited before and takes none any more",
                        f"credit {letter} again: +{rows}",
                        is_bad=True,
                    )
                )
                gained -= rows
    return reasons


def _tell_error(step: EventSeen | UpdateSeen) -> tuple[Reason, ...]:
    if step.error is None:
        return ()
    return (
        Reason(
            f"it raises {step.error.type}",
            step.error.message.rstrip("."),
            f"raises {step.error.type}",
            is_bad=True,
        ),
    )
