"""Settings in YAML, read with PyYAML in the version of the language that the agent itself reads."""

from __future__ import annotations

import re
from typing import Any

import yaml

_LONGEST = 1_000_000
"""Characters of a file; nobody writes settings of that length, and reading them would take seconds."""
_SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Core(_SAFE):  # type: ignore[misc]  # which of the two it is depends on how PyYAML was built
    """YAML 1.2's core schema: ``on``, ``off``, ``yes`` and dates are words, ``010`` is ten."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own way to say which plain words are more


_PLAIN = {
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "int": (r"[-+]?[0-9]+", "-+0123456789"),
    "float": (r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
}
for _kind, (_words, _first) in _PLAIN.items():
    _Core.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(f"(?:{_words})\\Z"), list(_first))
_Core.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node)))
_Core.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(loader.construct_scalar(node)))


def mapping(text: str, *, core: bool) -> dict[str, Any] | None:
    """A file's one mapping, an empty file's an empty one; ``None`` where it holds another thing or cannot be read.

    ``core``: by YAML 1.2, as agents in JavaScript read it; else by 1.1, as those in Python do. Aliases give one object
    several times, even inside itself: whoever walks through must come to an end.
    """
    if len(text) > _LONGEST:
        return None
    try:
        whole = yaml.load(text, Loader=_Core if core else _SAFE)  # noqa: S506 - both are safe ones
    except (yaml.YAMLError, RecursionError, ValueError, TypeError):  # a date that is none, a number of 5,000 digits
        return None
    return {} if whole is None else whole if isinstance(whole, dict) else None
