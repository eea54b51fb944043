"""Blocks and usage numbers, as several APIs spell them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from ctxscope.model import Body, Segment
from ctxscope.wire.json_text import loads, loads_leniently
from ctxscope.wire.raw_object import member_texts
from ctxscope.wire.spans import items, more_items, more_members, value_end


def parsed(data: bytes) -> dict[str, Any]:
    """A JSON object; ``{}`` for anything else. Bytes that are no UTF-8 and raw control characters are let pass."""
    value = _value(data)
    return value if isinstance(value, dict) else {}


def top(body: Body, *keys: str) -> tuple[Any, ...]:
    """The values at top-level keys of a body; ``None`` where there is none, or one nested too deep to be read."""
    value = parsed(body.data)
    if not value and is_cut(body):
        texts = member_texts(body.data)
        return tuple(_value(texts[key]) if key in texts else None for key in keys)
    return tuple(value.get(key) for key in keys)


def indexed(body: Body, key: str, behind: str) -> Iterable[tuple[int, Any]]:
    """The items of a top-level array with their indexes; with ``behind``, a path of one, only those that follow it.

    What stands before ``behind`` is not read again, so that the few new messages of a long body cost just themselves.
    An item nested too deep to be read is ``None``.
    """
    if behind:
        last = next((s for s in reversed(body.segments) if f"{s.path}/".startswith(f"{behind}/")), None)
        if last is None:
            return ()
        return _items_after(body.data[last.end :].decode("latin-1"), last.path.removeprefix(f"/{key}/").split("/"))
    value = parsed(body.data)
    if value or not is_cut(body):
        return enumerate(listed(value.get(key)))
    return enumerate(_items(member_texts(body.data).get(key, b"").decode("latin-1")))


def is_cut(body: Body) -> bool:
    """Whether a body is a JSON object, cut into segments."""
    return bool(body.segments) and body.segments[0].kind != "opaque"


def _items(text: str) -> list[Any]:
    """The items of an array given as latin-1, each read for itself; none of anything else."""
    found: list[Any] = []

    def visit(_index: int, at: int) -> int:
        end = value_end(text, at)
        found.append(_value(text[at:end].encode("latin-1")))
        return end

    if text[:1] == "[":
        items(text, 0, visit)
    return found


def _value(data: bytes) -> Any:
    try:
        return loads_leniently(data)
    except ValueError:
        return None


def _items_after(text: str, place: Sequence[str]) -> list[tuple[int, Any]]:
    """The items of an array behind the one with a segment that ends where ``text`` starts: ``[item, key, inner…]``."""
    found: list[tuple[int, Any]] = []

    def visit(index: int, at: int) -> int:
        end = value_end(text, at)
        found.append((index, _value(text[at:end].encode("latin-1"))))
        return end

    at, inside, inner = 0, 2, 3
    if len(place) >= inner:
        at = more_items(text, at, int(place[2]), lambda _i, start: value_end(text, start))
    if len(place) >= inside:
        at = more_members(text, at, lambda _k, start: value_end(text, start))
    more_items(text, at, int(place[0]), visit)
    return found


def listed(value: Any) -> list[Any]:
    """``value`` when it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def mapped(value: Any) -> dict[str, Any]:
    """``value`` when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def string(value: Any) -> str:
    """``value`` when it is a string, else ``""``."""
    return value if isinstance(value, str) else ""


def number(source: Mapping[str, Any], *path: str) -> int | None:
    """The integer at ``path``; ``None`` where there is none."""
    value: Any = source
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or value in _INFINITE:  # noqa: PLR0124 - the NaN test
        return None
    return int(value)


def prompt_parts(
    total: int | None, read: int | None, written: int | None
) -> tuple[int | None, int | None, int | None, tuple[str, ...]]:
    """Uncached, read and written tokens of a prompt that includes all three, and what is to be doubted of them.

    Parts that come to more than the whole are cut to it, written ones first: they were seen counted twice
    (prompt_caching §3.4).
    """
    if total is None:
        return None, read, written, ()
    most_read = None if read is None else min(read, total)
    room = total - (most_read or 0)
    most_written = None if written is None else min(written, room)
    if (most_read, most_written) == (read, written):
        return room - (written or 0), read, written, ()
    told = f"{read or 0} tokens read and {written or 0} written are more than the {total} of the prompt"
    taken = f"taken as {most_read or 0} read and {most_written or 0} written"
    return (
        room - (most_written or 0),
        most_read,
        most_written,
        (f"the provider reported what cannot be: {told}; {taken}",),
    )


def first(*values: int | None) -> int | None:
    """The first number that is known."""
    return next((v for v in values if v is not None), None)


def arguments(value: Any) -> str:
    """A tool call's arguments as compact JSON with sorted keys; a string that does not parse stays as it is.

    ``""`` for what nests too deep to be spelled.
    """
    if isinstance(value, str):
        try:
            value = loads(value)
        except ValueError:
            return string(value)
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except (TypeError, orjson.JSONEncodeError):
        return _arguments_by_json(value)


def joined_text(content: Any) -> str:
    """The text of a string or of a list of blocks, one below the other."""
    if isinstance(content, str):
        return content
    texts = (string(mapped(block).get("text")) for block in listed(content))
    return "\n".join(t for t in texts if t)


def error_text(value: Any) -> str | None:
    """The message of an error reply, whatever form the server gave it; ``None`` when it is none."""
    if isinstance(value, list) and value:
        value = value[0]
    error = mapped(value).get("error") or (mapped(value).get("detail") if _only_error(value) else None)
    if not error:
        return None
    if isinstance(error, str):
        return error
    message = string(mapped(error).get("message"))
    return message or string(mapped(error).get("type")) or arguments(error)


def param(body: Body, key: str) -> Any:
    """The parsed value of a top-level parameter; ``None`` where there is none. Of equal keys the last, as JSON has it."""
    path = f"/{key}"
    found = next((s for s in reversed(params(body)) if s.path == path), None)
    return None if found is None else _value(body.data[found.start : found.end])


def params(body: Body) -> tuple[Segment, ...]:
    """The parameters of a body, in body order; looked for only where nobody has yet."""
    if body.params is not None:
        return body.params
    return tuple(s for s in body.segments if s.kind == "param")


def integer(value: Any) -> int | None:
    """``value`` when it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


_INFINITE: Sequence[float] = (float("inf"), float("-inf"))


def _only_error(value: Any) -> bool:
    return isinstance(value, dict) and not {"choices", "candidates", "content", "output"} & value.keys()


def _arguments_by_json(value: Any) -> str:
    import json  # noqa: PLC0415 - only for what orjson refuses: lone surrogates, integers over 64 bits

    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    except (RecursionError, ValueError):
        return ""
