"""What a recording says of itself, as fields of its ``meta`` records and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.capture import secrets
from ctxscope.capture.events import Meta
from ctxscope.capture.raw_index import seconds

KIND = "meta"


def fields_of(meta: Meta) -> dict[str, Any]:
    """The fields to store, secrets cut; a pair's and a configuration's name are the user's own and stay."""
    found = {
        "ts": round(meta.time, 6),
        "agent": meta.agent,
        "command": secrets.command(meta.command),
        "override": [secrets.text(words) for words in meta.override],
        "changes": [secrets.text(words) for words in meta.changes],
        "upstreams": [secrets.origin(url) for url in meta.upstreams],
        "home": meta.home,
        "side": meta.side,
        "pair": meta.pair,
        "config": meta.config_id,
        "source": meta.source,
        "notes": [secrets.text(words) for words in meta.notes],
    }
    return {name: value for name, value in found.items() if value or name == "ts"}


def meta_of(fields: Mapping[str, Any]) -> Meta:
    """The meta that fields tell of; what has the wrong type says nothing."""

    def text(name: str) -> str:
        value = fields.get(name)
        return value if isinstance(value, str) else ""

    def texts(name: str) -> tuple[str, ...]:
        value = fields.get(name)
        return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()

    side = text("side")
    return Meta(
        time=seconds(fields.get("ts")) or 0.0,
        agent=text("agent"),
        command=texts("command"),
        override=texts("override"),
        changes=texts("changes"),
        upstreams=texts("upstreams"),
        home=text("home"),
        side="in" if side == "in" else "out" if side == "out" else "",
        pair=text("pair"),
        config_id=text("config"),
        source=text("source"),
        notes=texts("notes"),
    )
