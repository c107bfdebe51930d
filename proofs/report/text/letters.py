"""Short names for hashes."""

from __future__ import annotations

from spec.record.scenario import Scenario


def letters_of_scenario(scenario: Scenario) -> dict[str, str]:
    """A short name for each hash: the hash itself where all are short and plain."""
    names = list(dict.fromkeys(f.identifier for r in scenario.requests for f in r.all_features()))
    if all(len(name) <= 2 and name.isascii() and name.isalnum() for name in names):
        return {name: name for name in names}
    return {name: _letter(index) for index, name in enumerate(names)}


def _letter(index: int) -> str:
    """``A`` to ``Z``, then ``AA``, ``AB`` and so on."""
    letters = ""
    index += 1
    while index:
        index, place = divmod(index - 1, 26)
        letters = chr(ord("A") + place) + letters
    return letters
