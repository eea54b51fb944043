"""The head and the parameters of a request as far as the log implies them, beside the served values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctxscope.agents.messages import canonical, spans
from ctxscope.agents.messages.learnable import may_learn
from ctxscope.agents.messages.merge import MARKS, Rules, merge
from ctxscope.agents.messages.pieces import Pieces
from ctxscope.agents.messages.spelling import RAW
from ctxscope.agents.messages.tree import Node, parse
from ctxscope.model import ApiName, Piece, Place
from ctxscope.wire.blocks import joined_text, listed, mapped, string

SYSTEM_KEYS: Mapping[ApiName, tuple[str, ...]] = {
    "openai-chat": (),
    "anthropic-messages": ("system",),
    "openai-responses": ("instructions",),
    "gemini": ("systemInstruction", "system_instruction"),
}
"""Where an API has the system text beside the messages."""
LOGGED_SYSTEM = ("system", "system_prompt", "instructions", "systemInstruction", "system_instruction", spans.SYSTEM)
SOFT = frozenset(
    {"extra_body", "stream", "stream_options", "metadata", "user", "store", "n", "service_tier", "usage", "provider"}
)
"""Logged members that mean something else, or nothing, unless the first call was sent with them."""
_SPAN_PARAMS = {
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "max_tokens": ("max_tokens", "max_completion_tokens", "max_output_tokens"),
    "seed": ("seed",),
    "frequency_penalty": ("frequency_penalty",),
    "presence_penalty": ("presence_penalty",),
}
"""Attributes ``gen_ai.request.*`` and the keys that carry them."""
_JOINS = ("\n\n", "\n", "", " ")
_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parameters_json_schema", "parametersJsonSchema")


@dataclass(frozen=True, slots=True)
class Told:
    """What the log tells of one request beside its messages."""

    top: Mapping[str, bytes]
    """Members of the logged request."""
    span: Mapping[str, Any] | None
    place: Place
    system: tuple[bytes, ...] = ()
    """Contents of the system messages before all others, where they go beside the messages."""

    def system_values(self) -> tuple[bytes, ...]:
        """The logged values that make the system text."""
        return self.system or tuple(self.top[key] for key in LOGGED_SYSTEM if self.top.get(key) not in (None, b"null"))


def implied(
    told: Told, served: Mapping[str, bytes], first: Sequence[str], api: ApiName, rules: Rules
) -> Iterator[tuple[str, tuple[Piece, ...]]]:
    """Top-level keys that the log implies, with their values; ``first``: keys of the first call of the kind."""
    for key, value in told.top.items():
        if key in LOGGED_SYSTEM or key in (spans.TOOLS, "messages", "input", "contents"):
            continue
        is_param = may_learn(key) and key not in SOFT and value != b"null"
        if key in first or is_param:
            yield key, _value(told, key, value, served.get(key), rules)
    keys = SYSTEM_KEYS[api]
    values = told.system_values()
    if keys and values:
        key = next((k for k in keys if k in first), keys[0])
        yield key, _system(told, values, served.get(key), key, rules)
    if spans.TOOLS in told.top:
        yield from _tools(told, served.get("tools"), api, rules)
    yield from _attributes(told, served, api, rules)


def system_text(values: Sequence[bytes]) -> tuple[str, ...]:
    """The texts of logged system values."""
    found: list[str] = []
    for raw in values:
        node = parse(raw)
        value = node.value if node is not None else None
        if isinstance(value, list) and all(isinstance(v, dict) for v in value):
            found += [string(v.get("content")) or string(v.get("text")) for v in value]
        elif isinstance(value, dict):
            found.append(joined_text(value.get("parts")) or string(value.get("text")))
        elif isinstance(value, str):
            found.append(value)
    return tuple(t for t in found if t)


def says(texts: Sequence[str], served: str) -> bool:
    """Whether a served system text is these texts, joined in one of the usual ways."""
    return any(join.join(texts) == served for join in _JOINS)


def lead(told: Told, items: Sequence[bytes], rules: Rules, bulk: str) -> tuple[tuple[Piece, ...], ...]:
    """System messages before the others, for a log that keeps the system text beside its messages."""
    values = told.system_values()
    if not values:
        return ()
    texts, node = system_text(values), parse(items[0]) if len(items) == 1 else None
    out = Pieces(told.place)
    served = "\n".join(
        joined_text(n.fields["content"].value if "content" in n.fields else "") for n in map(parse, items) if n
    )
    if items and says(texts, served):
        return tuple((Piece(item, "logged", told.place),) for item in items)
    if node is not None and "content" in node.fields:
        content = parse(canonical.spelled(_JOINS[0].join(texts)).encode("utf-8", "surrogatepass"))
        at = node.fields["content"]
        out.constant(node.data[node.start : at.start])
        if content is not None:
            merge(out, content, at, rules, f"/{bulk}/0/content")
        out.constant(node.data[at.end : node.end])
        return (tuple(out.found),)
    return ((Piece(rules.spelling.value({"role": "system", "content": _JOINS[0].join(texts)}), "logged", told.place),),)


def _value(told: Told, key: str, logged: bytes, served: bytes | None, rules: Rules) -> tuple[Piece, ...]:
    one, two = parse(logged), parse(served) if served is not None else None
    out = Pieces(told.place)
    if one is None:
        out.logged(logged)
    elif key == "model" and two is not None and _is_prefixed(one, two):
        out.logged(served or b"")
    else:
        merge(out, one, two, rules, f"/{key}")
    return tuple(out.found)


def _is_prefixed(logged: Node, served: Node) -> bool:
    """LiteLLM's names of models begin with a provider that is not sent."""
    return "/" in string(logged.value) and string(logged.value).partition("/")[2] == served.value


def _system(told: Told, values: Sequence[bytes], served: bytes | None, key: str, rules: Rules) -> tuple[Piece, ...]:
    two = parse(served) if served is not None else None
    one = parse(values[0]) if len(values) == 1 else None
    is_own = one is not None and not any("content" in item.fields for item in one.items)
    if one is not None and is_own and (two is None or one.kind == two.kind or one.is_string):
        out = Pieces(told.place)
        merge(out, one, two, rules, f"/{key}")
        return tuple(out.found)
    texts = system_text(values)
    value = two.value if two is not None else None
    text = joined_text(value.get("parts") if isinstance(value, dict) else value)
    if served is not None and says(texts, text) and _is_plain(value):
        return (Piece(served, "logged", told.place),)
    joined = _JOINS[0].join(texts)
    made: Any = {"parts": [{"text": joined}]} if key.startswith("system") and key != "system" else joined
    return (Piece(rules.spelling.value(made), "logged", told.place),)


def _is_plain(system: Any) -> bool:
    """Whether a system text is spelled as an API takes it, with nothing else in it but cache marks."""
    if isinstance(system, dict):
        parts = listed(system.get("parts"))
        return system.keys() <= {"role", "parts"} and all(mapped(part).keys() == {"text"} for part in parts)
    blocks = listed(system)
    return all(mapped(b).get("type") == "text" and mapped(b).keys() <= {"type", "text", *MARKS} for b in blocks)


def _tools(told: Told, served: bytes | None, api: ApiName, rules: Rules) -> Iterator[tuple[str, tuple[Piece, ...]]]:
    """A span's tool definitions: name, description and schema, whatever form they are declared in."""
    mine = _declared(parse(told.top[spans.TOOLS]))
    theirs = _declared(parse(served)) if served is not None else None
    if served is not None and mine == theirs:
        yield "tools", (Piece(served, "logged", told.place),)
    elif mine:
        made = [canonical.tool(name, _loaded(text), _loaded(schema), api) for name, text, schema in mine]
        yield "tools", (Piece(rules.spelling.value(made), "logged", told.place),)


def _declared(node: Node | None) -> list[tuple[str, str, str]]:
    """Name, description and schema of each tool, spelled in one way, keys of the schema as they stand."""
    found: list[tuple[str, str, str]] = []
    for outer in node.items if node is not None else ():
        inner = outer.fields.get("functionDeclarations") or outer.fields.get("function_declarations")
        for item in inner.items if inner is not None else (outer.fields.get("function", outer),):
            fields = item.fields
            schema = next((fields[k] for k in _SCHEMAS if k in fields), None)
            texts = [
                RAW.text(n.raw).decode("utf-8", "replace") if n else "null" for n in (fields.get("description"), schema)
            ]
            found.append((string(fields["name"].value) if "name" in fields else "", *texts))  # type: ignore[arg-type]
    return found


def _loaded(text: str) -> Any:
    node = parse(text.encode("utf-8", "surrogatepass"))
    return node.value if node is not None else None


def _attributes(
    told: Told, served: Mapping[str, bytes], api: ApiName, rules: Rules
) -> Iterator[tuple[str, tuple[Piece, ...]]]:
    """Parameters that a span states: a number is one however it is spelled."""
    span = mapped(dict(told.span)) if told.span is not None else {}
    model = span.get("gen_ai.request.model")
    if isinstance(model, str) and (api != "gemini" or "model" in served):
        yield "model", (Piece(rules.spelling.value(model), "logged", told.place),)
    for name, keys in _SPAN_PARAMS.items():
        value = span.get(f"gen_ai.request.{name}")
        if isinstance(value, bool) or not isinstance(value, int | float) or api == "gemini":
            continue
        key = next((k for k in keys if k in served), keys[0])
        node = parse(served[key]) if key in served else None
        data = served[key] if node is not None and node.value == value else rules.spelling.value(value)
        yield key, (Piece(data, "logged", told.place),)
    stops = span.get("gen_ai.request.stop_sequences")
    if listed(stops) and (key := next((k for k in ("stop", "stop_sequences") if k in served), "")):
        yield key, (Piece(rules.spelling.value(stops), "logged", told.place),)
