"""The body that OpenAI's and Anthropic's Python clients make of their keyword arguments, which some tools keep instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NOT_SENT = frozenset({"extra_body", "extra_headers", "extra_query", "timeout"})
"""Arguments about the transport."""
_ENDPOINTS = ("/chat/completions", "/responses", "/messages", "/completions")


def body_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object sent: the arguments but those of the transport, with ``extra_body`` merged over them (openai 2.24)."""
    extra = arguments.get("extra_body")
    body = {name: value for name, value in arguments.items() if name not in _NOT_SENT}
    return {**body, **extra} if isinstance(extra, Mapping) else body


def endpoint(path: str, body: Mapping[str, Any]) -> str:
    """The path a body went to: ``path`` where it names an endpoint, else the one its shape is of, below ``path``."""
    bare = path.partition("?")[0].rstrip("/")
    if bare.endswith(_ENDPOINTS) or ":" in bare.rpartition("/")[2]:
        return path
    if is_anthropic(body):
        return bare.removesuffix("/v1") + "/v1/messages"
    return bare + ("/responses" if "input" in body else "/chat/completions")


def is_anthropic(body: Mapping[str, Any]) -> bool:
    """Whether a body is one of the Messages API: a system text of its own, or tools with ``input_schema``."""
    tools = body.get("tools")
    return "system" in body or (
        isinstance(tools, list) and any(isinstance(t, dict) and "input_schema" in t for t in tools)
    )
