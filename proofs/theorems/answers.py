"""What the theorems answer: the review of pull request 46315, and what 0.33.0 took back of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spec.verdict import Verdict


@dataclass(frozen=True)
class Statement:
    """One sentence of an answer and the theorems that carry it."""

    sentence: str
    theorems: tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """A question and what answers it."""

    question: str
    statements: tuple[Statement, ...]


QUESTIONS: tuple[Question, ...] = (
    Question(
        "Is the deferred free needed for safety?",
        (
            Statement(
                "a free with margin m is safe exactly when no later step starts below x - m, with "
                "x = computed - placeholders; so a margin is needed exactly when one can start "
                "below x, and by that difference; the look-ahead does not matter",
                (
                    "lifetime.drop-is-safe-from",
                    "lifetime.drop-is-unsafe-below",
                    "lifetime.nothing-reads-it-later",
                    "lifetime.something-reads-it-otherwise",
                ),
            ),
            Statement(
                "no (0 is the smallest safe margin) where progress falls by drafts in flight only "
                "and each of them is a placeholder",
                ("lifetime.margin-zero-without-rollback", "lifetime.margin-zero-with-placeholders"),
            ),
            Statement(
                "no, even if placeholders are ignored, while features lie in the prompt",
                ("lifetime.placeholders-needless-in-prompt", "lifetime.free-before-execution"),
            ),
            Statement(
                "yes where more drafts are in flight than there are placeholders, which can only "
                "be if some are not counted: by the difference",
                ("lifetime.margin-is-uncounted-drafts",),
            ),
            Statement(
                "no for a reference dropped when its step is scheduled, if the notice follows that "
                "step's drafter and no later step starts before this one's end; if the notice "
                "comes between target and drafter, by the step's tokens less the look-ahead",
                ("lifetime.notice-after-drafter", "lifetime.margin-before-the-drafter"),
            ),
            Statement(
                "no in the whole loop, whenever references go, since every pass asks again for all "
                "that it reads; and with margin 0 nothing goes that rejections can take progress "
                "back to, for there each draft in flight is shown to be a placeholder",
                (
                    "residency.target-reads",
                    "residency.drafter-reads",
                    "references.drafts-are-counted.advance",
                    "references.let-go-ends-by-lowest-progress",
                ),
            ),
        ),
    ),
    Question(
        "Is tolerating a boundary miss equivalent to clamping the drafter's window?",
        (
            Statement(
                "on what raises, yes for dense features, target and drafter taken together; for "
                "the drafter's gather alone if the look-ahead is shorter than the step",
                ("clamping.agrees-over-the-step", "clamping.agrees-in-the-gather"),
            ),
            Statement(
                "on what is read, no: clamping loses exactly the resident rows at or past the "
                "processed end, so every boundary feature",
                ("clamping.loses-rows-past-the-end", "clamping.skips-boundary"),
            ),
            Statement(
                "with masks, not on what raises either: a feature that starts before the processed "
                "end with no row for the target but one past that end raises with tolerance and "
                "not when clamped",
                ("clamping.differs-by-late-rows", "rows.starting-inside-is-targets"),
            ),
        ),
    ),
    Question(
        "Was it right to take the margin out again in 0.33.0, and what does each half cost?",
        (
            Statement(
                "yes: under the assumptions it guards nothing, and with margin 0 and a chunk that "
                "ends at the refused item a request that gets no token holds no other item, so "
                "that a lone request gets on unless something else stops it, such as 0.33.0's "
                "reservation for several modules or its cut before whole items",
                (
                    "residency.drafter-reads",
                    "references.let-go-ends-by-lowest-progress",
                    "progress.refused-at-progress-holds-nothing",
                    "progress.first-of-the-refused-has-room",
                    "progress.update-raises-progress",
                ),
            ),
            Statement(
                "a margin m holds each reference exactly while progress is less than m past the "
                "item's end; that is at most the largest item's rows and m - 1 more for each "
                "request, and can be as much",
                ("progress.margin-costs", "progress.rows-in-reach", "progress.reach-is-attained"),
            ),
            Statement(
                "and it stops requests: two items that do not fit the cache together stop one for "
                "ever exactly if the gap between them is less than the margin and the shift of the "
                "cut together",
                (
                    "progress.neighbours-stay",
                    "progress.neighbours-get-there",
                    "progress.neighbours-go-on",
                ),
            ),
            Statement(
                "tolerance leaves to token embeddings what the drafter reads of the one missing "
                "item: at most its look-ahead in rows of a pass, and only where a chunk ends less "
                "than that before a refused item",
                ("progress.tolerance-costs",),
            ),
            Statement(
                "without tolerance only a chunk that ends as far before a refused item as the "
                "drafter reads ahead keeps it from a miss, and that is a shift of the cut, which "
                "stops requests",
                ("reading.shifted-cut-needs-no-tolerance", "progress.neighbours-stay"),
            ),
        ),
    ),
)


def answers(verdicts: Mapping[str, Verdict]) -> list[str]:
    """The answers as lines of text, each sentence with its theorems and whether they hold.

    Args:
        verdicts: verdict of each theorem that was tried. A question of which none was tried is
            left out; a sentence is given only if all its theorems are PROVED.
    """
    lines: list[str] = []
    for number, question in enumerate(QUESTIONS, start=1):
        tried = [t for s in question.statements for t in s.theorems if t in verdicts]
        if not tried:
            continue
        lines.append(f"{number}. {question.question}")
        for statement in question.statements:
            open_theorems = [
                theorem
                for theorem in statement.theorems
                if verdicts.get(theorem) is not Verdict.PROVED
            ]
            if open_theorems:
                lines.append(f"   - not shown in this run: {', '.join(open_theorems)}")
            else:
                lines.append(f"   - {statement.sentence} ({', '.join(statement.theorems)})")
    return lines
