"""A verdict by the rules of the API's author, where a test is about the bytes and not about a host."""

from __future__ import annotations

import dataclasses
from typing import Any

from ctxscope.analysis import breaks
from ctxscope.analysis.evidence import Around
from ctxscope.analysis.prompts import Prompt
from ctxscope.analysis.providers import UNKNOWN, Providers
from ctxscope.model import Body, CacheVerdict

PROVIDERS = Providers()
AROUND = {field.name for field in dataclasses.fields(Around)}
_AUTHORS = {"anthropic-messages": "anthropic", "openai-chat": "openai", "openai-responses": "openai"}


def judge_cache(
    call: Body | Prompt | None, parent: Body | Prompt | None, *, provider: str | None = None, **about: Any
) -> CacheVerdict:
    """``breaks.judge_cache`` with the rules of ``provider``, else of the author of the call's API."""
    side = call if call is not None else parent
    api = side.api if side is not None else None
    model = (side.model if isinstance(side, Body) else side.settings.model) if side is not None else None
    named = provider or _AUTHORS.get(api or "", UNKNOWN)
    around = Around(**{name: about.pop(name) for name in AROUND & about.keys()})
    return breaks.judge_cache(call, parent, PROVIDERS.rules(named, model, api), around, **about)
