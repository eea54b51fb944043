"""Choices pi makes that its log does not tell, as a served body shows them; each is held for the whole session.

A form is read from the first call that shows it and never chosen call by call. What a body says that pi would not say
in any form shows none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ctxscope.agents.pi.anthropic import PLACEHOLDER
from ctxscope.agents.pi.texts import spelled, string
from ctxscope.agents.pi.transform import Target
from ctxscope.agents.reading.served import Facts
from ctxscope.wire import json_text

_ROLE = re.compile(rb'\{"role":"(system|developer)"')
_EFFORTS = frozenset({"none", "minimal", "low", "medium", "high", "xhigh", "max", "default"})
"""Efforts that pi's own model table puts in place of a thinking level; no other word comes from there."""
_PATHS = {"session": "/prompt_cache_key", "store": "/store", "usage": "/stream_options", "threads": "/thread"}
_REASONING = {
    "anthropic-messages": "/thinking",
    "openai-completions": "/reasoning_effort",
    "openai-responses": "/reasoning",
}


def path_of(form: str, api: str) -> str | None:
    """The key whose presence alone a form decides."""
    return _REASONING.get(api) if form == "reasoning" else _PATHS.get(form)


def defaults(target: Target) -> dict[str, Any]:
    """The forms the agent takes when nothing says otherwise (pi.md §4.5)."""
    if target.api == "anthropic-messages":
        return {
            "threads": False,
            "native": False,
            "placeholder": None,
            "cache": "short",
            "eager": True,
            "reasoning": True,
        }
    strict = False if target.old else None
    if target.api == "openai-completions":
        role, cap = ("developer" if target.old else "system"), "max_completion_tokens"
        return {
            "role": role,
            "strict": strict,
            "store": True,
            "usage": True,
            "session": False,
            "cap": cap,
            "reasoning": True,
        }
    if target.api == "openai-responses":
        return {"role": "developer", "strict": strict, "store": True, "session": True, "reasoning": True}
    return {}


def shown(api: str, facts: Facts, level: str, session: str) -> dict[str, Any]:
    """The forms one body shows; ``session`` is the id of the session that made the call."""
    if api == "anthropic-messages":
        return _anthropic(facts)
    if api not in {"openai-completions", "openai-responses"}:
        return {}
    found = {
        **_if_said("store", facts, "store", b"false"),
        **_if_said("session", facts, "prompt_cache_key", spelled(session)),
    }
    role = _ROLE.match(facts.head)
    if role:
        found["role"] = role[1].decode()
    tools = facts.values.get("tools", b"")
    if tools:
        found["strict"] = False if b'"strict":false' in tools else True if b'"strict":true' in tools else None
    effort = _effort(facts)
    if api == "openai-completions":
        found |= _if_said("usage", facts, "stream_options", b'{"include_usage":true}')
        caps = {"max_tokens", "max_completion_tokens"} & facts.values.keys()
        if len(caps) == 1:
            (found["cap"],) = caps
    sent = ("reasoning_effort" if api == "openai-completions" else "reasoning") in facts.values
    if level != "off":
        found["reasoning"] = sent
    if effort in _EFFORTS or (level == "off" and not sent):
        found[f"effort {level}"] = effort or None
    return found


def usual_effort(api: str, level: str) -> str | None:
    """The word for a thinking level of a model without a table of its own; ``None``: no effort is sent."""
    if level != "off":
        return level
    return "none" if api == "openai-responses" else None


def _if_said(form: str, facts: Facts, key: str, value: bytes) -> dict[str, Any]:
    """Whether a key is there; nothing where it holds what pi never puts there."""
    if key not in facts.values:
        return {form: False}
    return {form: True} if facts.values[key] == value else {}


def _anthropic(facts: Facts) -> dict[str, Any]:
    found: dict[str, Any] = {"threads": "thread" in facts.values}
    tools = facts.values.get("tools", b"")
    if tools:
        found["native"] = b'"name":"%s"' % PLACEHOLDER.encode() in tools
        found["eager"] = b'"eager_input_streaming":true' in tools
        found["placeholder"] = _placeholder(tools) if found["native"] else None
    marked = facts.values.get("system", facts.tail)
    found["cache"] = "none" if b'"cache_control"' not in marked else "long" if b'"ttl":"1h"' in marked else "short"
    found["reasoning"] = "thinking" in facts.values
    return found


def _placeholder(tools: bytes) -> bytes | None:
    """The placeholder as spelled, if it says what pi's always says."""
    at = tools.rfind(b'{"name":"%s"' % PLACEHOLDER.encode())
    raw = tools[at:-1]
    try:
        value = json_text.loads(raw)
    except ValueError:
        return None
    fits = value.get("description") == "Reserved placeholder. Never available. Never call this."
    return raw if at >= 0 and fits and value.get("defer_loading") is True else None


def _effort(facts: Facts) -> str:
    raw = facts.values.get("reasoning_effort") or facts.values.get("reasoning") or b"null"
    try:
        value = json_text.loads(raw)
    except ValueError:
        return ""
    return string(value.get("effort")) if isinstance(value, dict) else string(value)


_WORDS = {
    ("threads", True): "message threads are on: follow-ups carry only what is new",
    ("native", True): "later system messages and tool changes stay in place (compat of the model)",
    ("cache", "long"): "cache retention is long: marks carry a one-hour TTL",
    ("cache", "none"): "cache retention is none: no cache marks",
    ("eager", False): "tools are sent without eager input streaming",
    ("reasoning", False): "the model is not set up as a reasoning model",
    ("images", False): "the model is set up without images",
    ("store", False): "the server is set up without the store parameter",
    ("usage", False): "the server is set up without usage in streams",
    ("session", True): "the session's id is sent as the cache key",
    ("session", False): "the session's id is not sent as the cache key",
    ("cap", "max_tokens"): "the server is set up to take the output cap as max_tokens",
    ("strict", True): "tools are sent with strict schemas",
    ("strict", None): "tools are sent without the strict parameter",
    ("strict", False): "tools are sent with the strict parameter off",
}


def told(target: Target, choice: Mapping[str, Any]) -> tuple[str, ...]:
    """The choices that depart from the defaults, in words."""
    usual = defaults(target)
    words = []
    for name, value in choice.items():
        if name == "placeholder" or usual.get(name, name) == value or (name, value) == ("images", True):
            continue
        level = name.removeprefix("effort ")
        if name != level:
            if value != usual_effort(target.api, level):
                words.append(f"thinking level {level} is sent as {f'effort {value}' if value else 'no effort'}")
            continue
        words.append(_WORDS.get((name, value), f"{name}: {value}"))
    return tuple(words)
