"""What the home's settings say that bears on a session: hooks, and whether it compacts on its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.claude_code.lines import SETTINGS
from ctxscope.agents.claude_code.texts import mapped, string
from ctxscope.agents.claude_code.tree import tree
from ctxscope.model import Config


def config(log: Log) -> Config:
    """Version and settings; the window is the model's and stands in no file."""
    values: dict[str, Any] = {"hooks": tuple(sorted({event for event, _ in hooks(log)}))}
    for settings in _settings(log):
        if isinstance(settings.get("autoCompactEnabled"), bool):
            values["auto_compact"] = settings["autoCompactEnabled"]
    return Config(agent_version=tree(log).version, values=values)


def hooks(log: Log) -> Iterator[tuple[str, str]]:
    """Event and matcher of each configured hook."""
    for settings in _settings(log):
        for event, groups in mapped(settings.get("hooks")).items():
            for group in groups if isinstance(groups, list) else ():
                if isinstance(group, Mapping) and isinstance(group.get("hooks"), list) and group["hooks"]:
                    yield event, string(group.get("matcher"))


def matches(matcher: str, word: str) -> bool:
    """Whether a hook's matcher takes a word: empty and ``*`` take all, else it is a pattern for the whole of it."""
    try:
        return matcher in ("", "*") or re.fullmatch(matcher, word) is not None
    except re.error:
        return matcher == word


def _settings(log: Log) -> Iterator[Mapping[str, Any]]:
    for name in (SETTINGS, f"{SETTINGS}:local"):
        if name in log.index and log.entries[log.index[name]].kind == SETTINGS:
            yield log.entries[log.index[name]].data
