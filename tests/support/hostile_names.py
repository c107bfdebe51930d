"""Names that users could give, made to break what shows them."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = (
    "@user",
    "#123",
    "`",
    "``` ` ``",
    "```\n# heading\n```",
    "|",
    "a|b\\|c\\\\|",
    "\\",
    "<script>alert(1)</script>",
    "</svg></title><img src=x onerror=alert(1)>",
    "&amp;&lt;",
    "[text](https://example.invalid)",
    "![image](//example.invalid/x)",
    "https://example.invalid www.example.invalid",
    "**bold** _it_ ~~no~~ $x$ :smile:",
    "\"'\"\"\"'''",
    "line\nend\r\n\ttab",
    "\u202eright to left\u202c \u200f\u2066",
    "\u05d0\u05d1 \u0627\u0644",
    "e\u0301\u0302\u0303",
    "\x00\x1b[31m\x07",
    "\u2028\u2029\ufeff\U000e0001",
    "::error::%0Ainjected",
    "{{ 7 * 7 }}{% raw %}",
    "--- +++ ===",
    "1. - > #",
    "deadbeefdeadbeef GH-1",
    "x" * 10_000,
    "`" * 10_000,
    "",
)
"""Each by itself."""

names = st.one_of(
    st.sampled_from(NAMES),
    st.text(max_size=40),
    st.lists(st.sampled_from(NAMES), min_size=2, max_size=4).map("".join),
    st.text(alphabet="`|\\@# \n<>&[]()*_~$:!-+=.0123456789\u202e", max_size=30),
)
"""Mixtures, and any text."""
