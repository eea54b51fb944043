"""The pass before a batch compaction walks: older tool outputs as lines, repeated ones as references, long arguments cut.

Source of the rules: both versions' own compressor, read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ctxscope.agents.hermes.budget import Message, TailRule, walk
from ctxscope.agents.hermes.estimators import is_image
from ctxscope.agents.hermes.tool_lines import line_of, parsed

MOST_FLOOR = 8
"""Messages at most that the setting ``protect_last_n`` keeps by itself."""
_PRUNED = 200
"""Characters up to which a tool output stays as it is."""
_LONG_ARGUMENTS, _KEPT, _ELIDED = 500, 200, "...[truncated]"
"""Characters from which on arguments are cut, and what is kept of each text in them."""
_SPARED = 3
"""Newest messages that are shortened last (0.20)."""
_RECENT = 10
"""Newest messages of which a skill that one loads keeps its text (0.20)."""
_REPEATED = "[Duplicate tool output"
_REFERENCE = f"{_REPEATED} — same content as a more recent call]"
_CLEARED = "[Old tool output cleared to save context space]"
_NO_IMAGE, _NO_IMAGES = "[screenshot removed to save context]", "[screenshot removed]"
_LINE_END, _LONGEST_LINE = " chars)", 400
_Call = tuple[str, Any]
"""Name of a tool, and its arguments as JSON."""


def pruned(messages: Sequence[Message], rule: TailRule) -> list[Message]:
    """What the pass leaves. 0.20 also shortens inside what it protects, as long as that is half as much again as the budget."""
    out, calls = _once(messages), _calls_of(messages)
    floor = min(rule.last, len(out)) if rule.old else min(rule.last, len(out), MOST_FLOOR)
    first = _protected_from(messages, rule, floor)
    skills = frozenset() if rule.old else _skills_in_use(out, first)
    for i in range(first):
        out[i] = _shortened(out[i], calls, rule, skills)
    return out if rule.old else _relieved(out, first, calls, rule)


def _protected_from(messages: Sequence[Message], rule: TailRule, floor: int) -> int:
    """Index of the first message that the pass protects: the one that no longer fits the budget is among them."""
    cut, _, over = walk(rule.sizes(messages), 0, rule.budget, floor)
    return max(0, min(cut - 1 if over else cut, len(messages) - floor))


def _relieved(out: list[Message], first: int, calls: Mapping[str, _Call], rule: TailRule) -> list[Message]:
    """The protected messages shortened from the oldest on while they are too much, the newest output last of all."""
    spared = len(out) - min(_SPARED, len(out))
    if spared <= first:
        return out
    ceiling = int(rule.budget * 1.5)
    sizes = [rule.tokens(m, newest=True) for m in out]
    newest = max((i for i, m in enumerate(out) if m["role"] == "tool"), default=-1)

    def relieve(some: Iterator[int], enough: Callable[[], bool]) -> None:
        for i in some:
            out[i] = _shortened(out[i], calls, rule, frozenset())
            sizes[i] = rule.tokens(out[i], newest=True)
            if enough():
                return

    def fits() -> bool:
        return sum(sizes[first:]) <= ceiling

    if not fits():
        relieve(iter(range(first, spared)), fits)
        if not fits():
            relieve((i for i in range(first, len(out)) if i != newest), lambda: False)
            if newest >= first and not fits():
                relieve(iter((newest,)), fits)
    return out


def _once(messages: Sequence[Message]) -> list[Message]:
    """The messages with all but the newest of equal tool outputs replaced by a reference."""
    out, seen = list(messages), set[str]()
    for i in range(len(out) - 1, -1, -1):
        content = out[i].get("content")
        if out[i]["role"] == "tool" and isinstance(content, str) and len(content) >= _PRUNED:
            if content in seen:
                out[i] = {**out[i], "content": _REFERENCE}
            seen.add(content)
    return out


def _functions(message: Message) -> Iterator[tuple[Any, _Call]]:
    """Ids of the tool calls of an answer, and what they call."""
    for call in message.get("tool_calls") or () if message["role"] == "assistant" else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield call.get("id", ""), (str(function.get("name", "unknown")), function.get("arguments", ""))


def _calls_of(messages: Sequence[Message]) -> dict[str, _Call]:
    return {number: call for m in messages for number, call in _functions(m) if isinstance(number, str)}


def _skill_named(arguments: Any) -> str:
    given = parsed(arguments)
    name = given.get("name") if isinstance(given, dict) else None
    return name.lower() if isinstance(name, str) else ""


def _skills_in_use(messages: Sequence[Message], first: int) -> frozenset[str]:
    """Skills whose text the pass leaves: loaded lately or in the protected messages, or named there by the user."""
    said = [m["content"].lower() for m in messages[first:] if m["role"] == "user" and isinstance(m.get("content"), str)]
    since = min(first, max(0, len(messages) - _RECENT))
    loaded = (
        (i, _skill_named(arguments))
        for i, message in enumerate(messages)
        for _, (tool, arguments) in _functions(message)
        if tool == "skill_view"
    )
    return frozenset(skill for i, skill in loaded if skill and (i >= since or any(skill in text for text in said)))


def _shortened(message: Message, calls: Mapping[str, _Call], rule: TailRule, skills: frozenset[str]) -> Message:
    if message["role"] == "tool":
        return _output_shortened(message, calls, rule, skills)
    made = message.get("tool_calls") if message["role"] == "assistant" else None
    return {**message, "tool_calls": [_call_shortened(call) for call in made]} if made else message


def _output_shortened(message: Message, calls: Mapping[str, _Call], rule: TailRule, skills: frozenset[str]) -> Message:
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [{"type": "text", "text": _NO_IMAGE} if is_image(p) else p for p in content]}
    if isinstance(content, dict) and content.get("_multimodal"):
        said = content.get("text_summary") or _NO_IMAGE
        return {**message, "content": f"{_NO_IMAGES} {str(said)[:_PRUNED]}"}
    if not isinstance(content, str) or len(content) <= _PRUNED or content.startswith(_REPEATED) or content == _CLEARED:
        return message
    line = content.startswith("[") and _LINE_END in content and len(content) < _LONGEST_LINE
    if not rule.old and (line or content.startswith(_NO_IMAGES[:-1])):
        return message
    tool, arguments = calls.get(message.get("tool_call_id") or "", ("unknown", ""))
    if tool == "skill_view" and _skill_named(arguments) in skills:
        return message
    return {**message, "content": line_of(tool, arguments, content, old=rule.old)}


def _call_shortened(call: Mapping[str, Any]) -> Mapping[str, Any]:
    function = call.get("function")
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(arguments, str) or len(arguments) <= _LONG_ARGUMENTS:
        return call
    given = parsed(arguments)
    if given is None:
        return call
    try:
        short = json.dumps(_texts_shortened(given), ensure_ascii=False)
    except RecursionError:
        return call
    return {**call, "function": {**function, "arguments": short}}


def _texts_shortened(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_KEPT] + _ELIDED if len(value) > _KEPT else value
    if isinstance(value, dict):
        return {name: _texts_shortened(item) for name, item in value.items()}
    return [_texts_shortened(item) for item in value] if isinstance(value, list) else value
