"""What a pull-request comment says of one violation: short, and safe to paste."""

from __future__ import annotations

from collections.abc import Sequence

from proofs.describe.visible import visible
from proofs.describe.words import counted
from proofs.report.near.deciders import Tried
from proofs.report.pages.account import Account
from proofs.report.pages.reproduce import Links, environment_of, reproduce
from proofs.report.picture.text_timeline import text_timeline
from proofs.report.story.timeline import StepRow
from proofs.report.text.markup import COMMENT_LIMIT, code_span, fenced, fitted, prose, table
from proofs.report.text.public import linked_markdown

_MOST_SENTENCES = 12
_MOST_TRIED = 6
_ITEMS = "items at their positions, of so many tokens"
_CUT = "This was cut to the size of a comment; the other files hold all of it."


def markdown_report(account: Account, links: Links) -> str:
    """The text of the comment.

    Args:
        account: all that is told of the violation.
        links: names of the files beside it.
    """
    return fitted(markdown_sections(account, links), COMMENT_LIMIT, _CUT)


def markdown_sections(account: Account, links: Links) -> list[str]:
    """The parts of the comment, the most important first."""
    example = account.example
    sections = [
        f"### {code_span(account.claim.id)}: violated by {prose(example.trace.target, 200)}",
        f"**{prose(account.headline)}.**",
        _facts(account),
        fenced(text_timeline(account.timeline)),
        _contradiction(account),
        _reproduce(account, links),
    ]
    if account.story:
        sections.append(_story(account))
    if account.deciders or account.neighbours:
        sections.append(_tried((*account.deciders, *account.neighbours)))
    beside = [code_span(name) for name in links.all if name != links.markdown]
    sections.append(f"Beside this: {', '.join(beside)}.")
    if account.not_shown:
        told = [f"- {prose(one.rstrip('.'))}." for one in account.not_shown]
        sections.append("\n".join(("Not shown:", "", *told)))
    return sections


def _facts(account: Account) -> str:
    example, origin = account.example, account.origin
    finding = example.finding
    target = prose(example.trace.target, 200, in_table=True)
    found_on = [f"{target}, {' and '.join(example.runners)}"]
    found_on.append(prose(account.mode, in_table=True))
    if origin.digest is not None:
        found_on.append(code_span(origin.digest, 80, in_table=True))
    if origin.seed is not None:
        found_on.append(f"seed {origin.seed}")
    rows = [
        ("claim", prose(account.claim.sentence, in_table=True)),
        ("found on", ", ".join(found_on)),
        (
            "smallest run",
            f"{code_span(account.run, 400, in_table=True)}; {_ITEMS}; {account.run_legend}",
        ),
        (
            "settings",
            prose(
                f"reached by default settings: {account.reach.answer}; {account.reach.sentence}",
                in_table=True,
            ),
        ),
        (
            "fault",
            f"{prose(finding.mechanism, 300, in_table=True)}, {code_span(finding.fingerprint)}",
        ),
    ]
    return table(("", ""), rows)


def _contradiction(account: Account) -> str:
    finding = account.example.finding
    what = f"{prose(finding.observed)}. The claim asks for: {prose(finding.expected)}."
    if finding.loop is None:
        return f"**The contradiction**, {_moment(account)}: {what}"
    first, last = finding.loop
    again = f"Pass {first} comes" if first == last else f"Passes {first} to {last} come"
    return f"**The contradiction**, from pass {first} on: {what} {again} again for ever."


def _moment(account: Account) -> str:
    """When the contradiction shows, as the story says it."""
    row = account.timeline.rows[account.timeline.contradiction]
    assert isinstance(row, StepRow)
    return f"before pass {row.pass_index}" if row.kind == "event" else f"in {row.title}"


def _story(account: Account) -> str:
    """The sentences up to the contradiction; of a long story its end."""
    sentences = account.story
    left_out = max(0, len(sentences) - _MOST_SENTENCES)
    lines = ["**What happens**", ""]
    if left_out:
        lines += [f"({counted(left_out, 'sentence')} before left out.)", ""]
    for number, sentence in enumerate(sentences[left_out:], start=left_out + 1):
        because = f", because {prose(sentence.because)}" if sentence.because else ""
        lines.append(f"{number}. {prose(sentence.text.rstrip('.'))}{because}.")
    return "\n".join(lines)


def _tried(tried: Sequence[Tried]) -> str:
    rows = (
        (
            prose(one.what, 300, in_table=True),
            one.outcome,
            linked_markdown(prose(one.note, 300, in_table=True)) if one.note else "",
        )
        for one in tried[:_MOST_TRIED]
    )
    return table(("what if", "then it", ""), rows)


def _reproduce(account: Account, links: Links) -> str:
    example = account.example
    lines = reproduce(account.origin, example.finding, example.trace.runner, links)
    # No shell takes what a path with a line end, or one that turns the text, would become here.
    where = environment_of(account.origin, links)
    where = where and f", {where}"
    return f"Reproduce{where}:\n\n" + fenced([visible(line, None) for line in lines], "shell")
