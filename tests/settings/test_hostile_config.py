"""Files of arguments that were made to break whoever reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from proofs.commands.main import main
from proofs.settings.flags.arguments import _PlainLoader, read_config
from proofs.settings.flags.facts import table
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
        ("".join(f"{' ' * n}a:\n" for n in range(5000)), "nested too deep"),
        ("max-num-seqs: 1\nmax_num_seqs: 2\n", "max_num_seqs is given twice"),
        (f"max-num-seqs: {'9' * 5000}\n", "neither YAML nor JSON: Exceeds the limit"),
        ("a: 2001-13-45\n", "neither YAML nor JSON: month must be"),
    ],
)
def test_a_hostile_file_is_refused_on_one_line(tmp_path: Path, text: str, words: str) -> None:
    """Wrong: memory runs out, a traceback, or one of two equal keys taken without a word."""
    path = tmp_path / "engine.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        read_config(path)


def test_a_long_file_of_many_keys_takes_no_longer_than_it_is_long(tmp_path: Path) -> None:
    """Wrong: looking for equal keys compares each with each other one."""

    class Counted(str):
        num_compared = 0

        def __eq__(self, other: object) -> bool:
            Counted.num_compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    keys = [yaml.ScalarNode("tag:yaml.org,2002:str", Counted(f"k{n}")) for n in range(300)]
    table = yaml.MappingNode("tag:yaml.org,2002:map", [(key, key) for key in keys])
    _PlainLoader("").construct_mapping(table)
    assert Counted.num_compared < 10 * len(keys)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--speculative-config.a", "[" * 100_000], "nested too deep"),
        (["--speculative-config.a", "1", "--speculative-config.a.b", "2"], "a value of its own"),
    ],
)
def test_hostile_arguments_are_refused_on_one_line(words: list[str], said: str) -> None:
    """Wrong: a traceback, or one of two equal keys taken without a word."""
    done = CliRunner().invoke(main, ["lint-config", *words])
    assert done.exit_code == 2, done.output
    assert said in done.output
    assert done.output.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"method": "a", "method": "b"}', "'method' stands twice"),
        ('{"a": ' * 5000 + "1" + "}" * 5000, "nested too deep"),
        ("eagle", "is no JSON object"),
        ("[1]", "is no JSON object"),
    ],
)
def test_a_hostile_table_is_refused(text: str, said: str) -> None:
    """Wrong: a traceback, or one of two equal keys taken without a word."""
    with pytest.raises(InputError, match=said):
        table({"speculative_config": text}, "speculative_config")
