"""Make many frozen records cheaply.

The constructor of a frozen dataclass sets each field through a call, which takes five times as long
as setting it. A run makes some twenty records in each pass, and that was most of what recording it
cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, ParamSpec, TypeVar, cast

_Parameters = ParamSpec("_Parameters")
_Record = TypeVar("_Record")


def quick(record: Callable[_Parameters, _Record]) -> Callable[_Parameters, _Record]:
    """A quick constructor of a frozen dataclass with slots: same arguments, same objects.

    It fills an object of a mutable class with the same slots, which then becomes a record. As that
    of a dataclass, its code is written out for the fields.

    Args:
        record: the frozen dataclass; it has no defaults made by a function, no ``__post_init__``.
    """
    frozen: Any = record
    dataclass_fields = fields(frozen)
    mutable = type(frozen.__name__, (), {"__slots__": frozen.__slots__})
    names: dict[str, Any] = {"mutable": mutable, "frozen": frozen}
    parameters = []
    for field in dataclass_fields:
        if field.default is MISSING:
            parameters.append(field.name)
        else:
            names[f"default_{field.name}"] = field.default
            parameters.append(f"{field.name}=default_{field.name}")
    lines = [
        f"def make({', '.join(parameters)}):",
        "    made = mutable()",
        *(f"    made.{field.name} = {field.name}" for field in dataclass_fields),
        "    made.__class__ = frozen",
        "    return made",
    ]
    exec("\n".join(lines), names)  # noqa: S102 - names of fields, from our own classes
    return cast(Callable[_Parameters, _Record], names["make"])
