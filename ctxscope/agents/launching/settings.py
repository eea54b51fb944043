"""What launchers read of a user's own files, to know which server an agent would really call.

A file that is missing, broken or of another shape counts as empty: the agent itself tells its user of that, and without
the file it goes where it would go by default.
"""  # noqa: INP001 - a folder with an __init__ would be an agent

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MOST = 1 << 22
"""Bytes of a settings file that are read."""
JSON_BASE_URL = re.compile(r'"baseUrl"\s*:\s*("(?:[^"\\]|\\.)*")')
"""A base URL in JSON, under the name that most give it; the string is its group."""
_PORTS = {"http": 80, "https": 443}
_JSON_WITH_COMMENTS = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)")
_COMMENT = re.compile(r"\s+#.*")


def text(path: Path) -> str:
    """A file's text; what is no UTF-8 becomes U+FFFD."""
    try:
        with path.open("rb") as file:
            return file.read(MOST).decode("utf-8-sig", "replace")
    except (OSError, ValueError):
        return ""


def from_json(path: Path) -> Mapping[str, Any]:
    """An object in JSON; comments and commas before a closing bracket are no fault."""
    return parsed(text(path))


def parsed(json_text: str) -> Mapping[str, Any]:
    """The same of a text."""
    plain = _LAST_COMMA.sub(_string, _JSON_WITH_COMMENTS.sub(_string, json_text))
    try:
        return mapping(json.loads(plain))
    except (ValueError, RecursionError):
        return {}


def from_toml(path: Path) -> Mapping[str, Any]:
    """A TOML file."""
    try:
        return tomllib.loads(text(path))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def from_dotenv(path: Path) -> dict[str, str]:
    """The variables of a ``.env`` file, by its lines; what is put together from other variables is left out."""
    found = {}
    for line in text(path).splitlines():
        if assigned := _ASSIGNMENT.fullmatch(line):
            value = assigned[2].strip()
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
            value = value[1:-1] if quoted else _COMMENT.sub("", value)
            if "$" not in value:
                found[assigned[1]] = value
    return found


def mapping(value: Any) -> Mapping[str, Any]:
    """An object of a settings file, empty where there is none."""
    return value if isinstance(value, Mapping) else {}


def inside(settings: Mapping[str, Any], *names: str) -> Any:
    """A value by the names on the way to it; ``None`` where the way ends."""
    found: Any = settings
    for name in names:
        found = mapping(found).get(name)
    return found


def base_url(value: Any) -> str | None:
    """A value that is the URL of a server that can be reached by way of the proxy."""
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or " " in value:
        return None
    try:
        split, port = urlsplit(value), urlsplit(value).port
    except ValueError:
        return None
    return value if split.scheme in ("http", "https") and split.hostname and port != 0 else None


def origin(url: str) -> str:
    """Scheme, host and port of a base URL, spelt as ``URL.origin`` of JavaScript spells them."""
    split = urlsplit(url)
    name = split.hostname or ""
    place = f"[{name}]" if ":" in name else name
    return f"{split.scheme}://{place}" + (f":{split.port}" if split.port not in (None, _PORTS[split.scheme]) else "")


def strings(json_text: str, values: re.Pattern[str]) -> Iterator[str]:
    """What stands in the strings that ``values`` matches with its last group, in JSON that may hold comments."""
    for found in values.finditer(json_text):
        with suppress(ValueError):
            yield json.loads(found[found.re.groups])


def host(url: str) -> str:
    """A URL's host in lower case."""
    return urlsplit(url).hostname or ""


def folder(named: str | None, home: Path, *usual: str) -> Path:
    """The folder a variable names, ``~`` resolved; without one its usual place below ``home``."""
    if not named:
        return home.joinpath(*usual)
    return home / named[2:] if named.startswith("~/") else Path(named)


def rerouted(settings_text: str, values: re.Pattern[str], through: Callable[[str], str]) -> str:
    """A settings file with each base URL leading through the proxy, and not a byte of it else changed.

    ``values`` matches a key and its value; the value, a string in double quotes, is its last group.
    """

    def put(found: re.Match[str]) -> str:
        try:
            url = base_url(json.loads(found[found.re.groups]))
        except ValueError:
            return found[0]
        before = found[0][: found.start(found.re.groups) - found.start()]
        return found[0] if url is None else before + json.dumps(through(url))

    return values.sub(put, settings_text)


def _string(found: re.Match[str]) -> str:
    return found[1] or ""
