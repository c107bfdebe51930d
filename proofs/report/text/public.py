"""Numbers of public pull requests and issues in our own sentences: whose they are, and a link.

A sentence has the bare number, or the name of a fork's project before it. Nothing that comes from
outside may be given here: any number of five digits would be taken for one.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(r"(?<![\w&#.])(vllm-ascend )?(\d{5})(?![\w.])")
_PROJECT = "https://github.com/vllm-project"
_NAMES = {"vllm": "vLLM", "vllm-ascend": "vllm-ascend"}


def linked_markdown(text: str) -> str:
    """Markdown in which each number is a link: ``[vLLM #46315](...)``."""
    return _NUMBER.sub(lambda found: f"[{_name(found)}]({_address(found)})", text)


def named_text(text: str) -> str:
    """Plain text in which each number has its project's name: ``vLLM #46315``."""
    return _NUMBER.sub(_name, text)


def linked_html(text: str) -> str:
    """Escaped HTML in which each number is a link."""
    return _NUMBER.sub(lambda found: f'<a href="{_address(found)}">{_name(found)}</a>', text)


def _name(found: re.Match[str]) -> str:
    return f"{_NAMES[_repository(found)]} #{found[2]}"


def _address(found: re.Match[str]) -> str:
    # The site forwards the address of a pull request to the issue, where the number is one.
    return f"{_PROJECT}/{_repository(found)}/pull/{found[2]}"


def _repository(found: re.Match[str]) -> str:
    return (found[1] or "vllm").strip()
