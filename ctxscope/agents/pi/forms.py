"""Choices pi makes that its log does not tell, as a served body shows them; each is held for the whole session.

A form is read from the first call that shows it and never chosen call by call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ctxscope.agents.pi.anthropic import PLACEHOLDER
from ctxscope.agents.pi.served import Facts
from ctxscope.agents.pi.texts import string
from ctxscope.agents.pi.transform import Target
from ctxscope.wire import json_text

_ROLE = re.compile(rb'\{"role":"(system|developer)"')


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


def shown(target: Target, facts: Facts, body: bytes, level: str) -> dict[str, Any]:
    """The forms one body shows."""
    if target.api == "anthropic-messages":
        return _anthropic(facts, level)
    if target.api not in {"openai-completions", "openai-responses"}:
        return {}
    found: dict[str, Any] = {"store": "store" in facts.keys, "session": "prompt_cache_key" in facts.keys}
    role = _ROLE.match(body, facts.start)
    if role:
        found["role"] = role[1].decode()
    tools = facts.values.get("tools", b"")
    if tools:
        found["strict"] = False if b'"strict":false' in tools else True if b'"strict":true' in tools else None
    effort = _effort(facts)
    if target.api == "openai-completions":
        found["usage"] = "stream_options" in facts.keys
        if "max_tokens" in facts.keys or "max_completion_tokens" in facts.keys:
            found["cap"] = "max_tokens" if "max_tokens" in facts.keys else "max_completion_tokens"
        if level != "off":
            found["reasoning"] = effort is not None
    else:
        found["reasoning"] = "reasoning" in facts.keys
    if effort is not None and level != "off":
        found[f"effort {level}"] = effort
    return found


def _anthropic(facts: Facts, level: str) -> dict[str, Any]:
    found: dict[str, Any] = {"threads": "thread" in facts.keys}
    tools = facts.values.get("tools", b"")
    if tools:
        found["native"] = b'"name":"%s"' % PLACEHOLDER.encode() in tools
        found["eager"] = b'"eager_input_streaming":true' in tools
        found["placeholder"] = _placeholder(tools) if found["native"] else None
    marked = facts.values.get("system", facts.tail)
    found["cache"] = "none" if b'"cache_control"' not in marked else "long" if b'"ttl":"1h"' in marked else "short"
    if "thinking" in facts.keys or level == "off":
        found["reasoning"] = "thinking" in facts.keys
    else:
        found["reasoning"] = False
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


def _effort(facts: Facts) -> str | None:
    raw = facts.values.get("reasoning_effort") or facts.values.get("reasoning") or b"null"
    value = json_text.loads(raw)
    return string(value.get("effort")) if isinstance(value, dict) else value if isinstance(value, str) else None


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
            if level != value:
                words.append(f"thinking level {level} is sent as effort {value}")
            continue
        words.append(_WORDS.get((name, value), f"{name}: {value}"))
    return tuple(words)
