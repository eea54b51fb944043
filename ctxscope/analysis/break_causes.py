"""Why a prompt stopped being a continuation of its parent, by the names of the taxonomy (prompt_caching §12).

Decided from the bytes of the two requests and the log's markers alone. This file has the request as a whole and its
head; ``rewrites`` has the messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ctxscope.analysis.evidence import Case
from ctxscope.analysis.prompt_params import changed_params
from ctxscope.analysis.prompts import shared
from ctxscope.analysis.rewrites import rewrite_of
from ctxscope.analysis.visible_text import parsed, spelled, visible_text
from ctxscope.analysis.volatile import named, only_billing, only_volatile
from ctxscope.model import Body, Segment

LEVELS = {"all": 0, "tool": 1, "system": 2, "message": 3, "messages": 3}
"""Rank of the levels of a prompt in cache order; a change of the whole request comes before all of them."""
_WEB = ("web_search_", "web_fetch_")
"""Types of the tools whose presence Anthropic renders behind the tools (prompt_caching §2.2)."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One change that by itself would end the shared prefix."""

    name: str
    why: str
    at: tuple[int, int]
    """Where it takes hold in cache order: rank of the level (see ``LEVELS``) and place within it."""
    path: str = ""
    """Where it stands, when it loses more than what comes behind that place (``/model``)."""
    sure: bool = True
    """The bytes leave no doubt of the cause; that of ``history_rewritten`` may be another (compaction, pruning)."""
    doubtful: bool = False
    """The sources disagree, or say "assume", whether the provider renders it: reported usage decides."""
    known: bool = True
    """That the provider's model sees it is known; else it may be no cause at all."""
    place: int | None = None
    """Segments of the parent's prompt before what it takes away, where that is not where the bytes part."""


def causes(case: Case) -> list[Cause]:
    """All changes between two prompts that end the prefix, in the order in which they are blamed; empty when none."""
    found = [*_model(case), *_tools(case), *_params(case), *_system(case)]
    message = _messages(case)
    found += _presence(case, rewritten=message is not None)
    return [*found, message] if message else found


def same_settings(case: Case) -> bool:
    """Whether nothing outside the messages' own bytes can have changed what is rendered of them."""
    mine, theirs = case.mine, case.theirs
    return (
        not _other_model(case)
        and (
            mine.settings.params == theirs.settings.params
            or next(changed_params(case.rules, mine, theirs), None) is None
        )
        and (mine.settings.image < 0) == (theirs.settings.image < 0)
        and (mine.settings.citations < 0) == (theirs.settings.citations < 0)
        and _betas(case) == _betas(case, before=True)
    )


def _model(case: Case) -> Iterator[Cause]:
    if _other_model(case):
        now, before = case.mine.settings.model, case.theirs.settings.model
        yield Cause("model_changed", f"the model changed from {before} to {now}", (0, 0), "/model")


def _other_model(case: Case) -> bool:
    """Whether both requests name a model, and not the same."""
    now, before = case.mine.settings.model, case.theirs.settings.model
    return now != before and None not in (now, before)


def _params(case: Case) -> Iterator[Cause]:
    """C10, and ``speed``, which goes by C02; usage decides, since most rows hold for some models only."""
    for name, param in changed_params(case.rules, case.mine, case.theirs):
        cause = "model_changed" if name == "speed" else f"param_changed:{name}"
        place = (LEVELS[param.loses], 0)
        yield Cause(cause, f"the parameter {name} changed", place, f"/{name}", doubtful=not param.sure)
    if case.theirs.api == "anthropic-messages" and _betas(case) != _betas(case, before=True):
        why = "the set of active beta features changed"
        yield Cause("param_changed:betas", why, (LEVELS["messages"], 0), "anthropic-beta", doubtful=True)


def _betas(case: Case, *, before: bool = False) -> frozenset[str]:
    """The beta features that a request switches on."""
    header = case.around.headers[before].get("anthropic-beta", "")
    return frozenset(name.strip() for name in header.split(",") if name.strip())


def _presence(case: Case, *, rewritten: bool) -> Iterator[Cause]:
    """What Anthropic renders before all messages as soon as one message holds it (prompt_caching §2.2).

    The last image that leaves with a message ``rewritten`` is told with that message.
    """
    mine, theirs = case.mine, case.theirs
    for name, level, now, before in (
        ("citations", "system", mine.settings.citations, theirs.settings.citations),
        ("images", "messages", mine.settings.image, theirs.settings.image),
    ):
        appeared = now >= 0
        if appeared != (before >= 0) and not (name == "images" and before >= 0 and rewritten):
            path = mine.listed[now].path if appeared else theirs.listed[before].path
            word = "appeared in" if appeared else "left"
            yield Cause(f"param_changed:{name}", f"{name} {word} the messages", (LEVELS[level], 0), path, doubtful=True)


# --- head ------------------------------------------------------------------------------------------------------------


def _tools(case: Case) -> list[Cause]:
    mine, theirs = case.mine.of_kind("tool"), case.theirs.of_kind("tool")
    at = _alike(case, mine, theirs)
    if at == len(mine) == len(theirs):
        return []
    now, before = _named(case.mine.load(), mine), _named(case.theirs.load(), theirs)
    web = [n for n in (*now, *before) if (now.get(n) or before[n])[2] and (n in now) != (n in before)]
    told = list(_tool_changes(now, before, at, web))
    both = [n for n in now if n in before]
    if both != [n for n in before if n in now] or not (told or web):
        told.append(Cause("tool_reordered", "the same tools stand in another order", (LEVELS["tool"], at)))
    if web:
        side, names = (mine, now) if web[0] in now else (theirs, before)
        path = side[list(names).index(web[0])].path
        why = f"switched on or off: {', '.join(web)}"
        told.append(Cause("param_changed:web_tools", why, (LEVELS["system"], 0), path, doubtful=True))
    return told


Named = dict[str, tuple[bytes, str, bool]]
"""Tools by name: digest, definition with sorted keys, and whether it is a web tool of Anthropic's."""


def _tool_changes(now: Named, before: Named, at: int, web: Sequence[str]) -> Iterator[Cause]:
    places, old_places = {n: i for i, n in enumerate(now)}, {n: i for i, n in enumerate(before)}
    both = [n for n in now if n in before and max(places[n], old_places[n]) >= at]
    changed = [n for n in both if now[n][0] != before[n][0]]
    schema = [n for n in changed if now[n][1] != before[n][1]]
    for name, why, who, where in (
        ("tool_added", "tool added", [n for n in now if n not in before and n not in web], places),
        ("tool_removed", "tool removed", [n for n in before if n not in now and n not in web], old_places),
        ("tool_schema_changed", "definition changed of tool", schema, places),
        ("tool_key_order", "keys in another order in tool", [n for n in changed if n not in schema], places),
    ):
        if who:
            yield Cause(name, f"{why}: {', '.join(who)}", (LEVELS["tool"], max(at, where[who[0]])))


def _named(body: Body, tools: Sequence[Segment]) -> Named:
    """A tool without a name goes by its place."""
    found: Named = {}
    for n, segment in enumerate(tools):
        value = parsed(body, segment)
        inner = value.get("function") if isinstance(value, dict) else None
        tool: Any = inner if isinstance(inner, dict) else value
        name = (tool.get("name") or tool.get("type")) if isinstance(tool, dict) else None
        key = str(name) if name else f"#{n}"
        if key in found:
            key = f"{key}#{n}"
        kind = tool.get("type") if isinstance(tool, dict) else None
        web = body.api == "anthropic-messages" and isinstance(kind, str) and kind.startswith(_WEB)
        found[key] = (segment.digest, spelled(value, body.data[segment.start : segment.end], sort_keys=True), web)
    return found


def _alike(case: Case, mine: Sequence[Segment], theirs: Sequence[Segment]) -> int:
    """Leading segments of one kind that both prompts begin with, as the provider sees them."""
    passed = sum(s.kind == mine[0].kind for s in case.mine.segments[: case.depth]) if mine else 0
    return max(passed, shared([s.digest for s in mine], [s.digest for s in theirs]))


def _system(case: Case) -> Iterator[Cause]:
    mine, theirs = case.mine.of_kind("system"), case.theirs.of_kind("system")
    at = _alike(case, mine, theirs)
    if at == len(mine) == len(theirs):
        return
    place = (LEVELS["system"], at)
    now, before = _words(case.mine.load(), mine), _words(case.theirs.load(), theirs)
    if only_volatile(before, now):
        what = named(before, now)
        yield Cause("volatile_content", f"{what} in the system text changed", place, doubtful=only_billing(before, now))
    else:
        yield Cause("system_changed", "the system text changed", place)


def other_head(case: Case) -> bool:
    """Whether only one of two calls is given tools, and no piece of their heads is alike (a title, a summary)."""
    mine, theirs = case.mine, case.theirs
    tools = [bool(p.segments) and p.segments[0].kind == "tool" for p in (mine, theirs)]
    return tools[0] != tools[1] and not set(mine.digests[: mine.head]) & set(theirs.digests[: theirs.head])


def _words(body: Body, segments: Sequence[Segment]) -> str:
    return "\n".join(text for s in segments for _, text in visible_text(body, s).texts)


# --- messages --------------------------------------------------------------------------------------------------------


def _messages(case: Case) -> Cause | None:
    """The first message that is not the parent's. If the last image went with it, all messages are lost."""
    found = rewrite_of(case.mine, case.theirs, case.depth, case.around.markers, case.rules)
    if found is None:
        return None
    if case.theirs.settings.image >= 0 > case.mine.settings.image:
        return Cause(found.name, found.why, (LEVELS["message"], 0), found.path, found.sure)
    return Cause(found.name, found.why, (LEVELS["message"], found.at), sure=found.sure)
