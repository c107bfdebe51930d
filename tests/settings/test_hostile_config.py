"""Files of arguments that were made to break whoever reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofs.settings.flags.arguments import read_config
from spec.errors import InputError

_BOMB = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(20)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (_BOMB, "an alias"),
        ("max-num-seqs: 1\nmax-num-seqs: 2\n", "'max-num-seqs' stands twice"),
        ("a: " + "[" * 5000 + "]" * 5000, "nested too deep"),
    ],
)
def test_a_hostile_file_is_refused_on_one_line(tmp_path: Path, text: str, words: str) -> None:
    """Wrong: memory runs out, a traceback, or one of two equal keys taken without a word."""
    path = tmp_path / "engine.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        read_config(path)
