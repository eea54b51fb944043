"""What a new process makes of a chat file: it loads its messages into a history of its own, and writes that down (gemini.md §5).

As read in 0.61.0: a message that holds an answer becomes its parts, without signatures, and the results of the tools
logged with it become a message of their own, beside the one that already answers them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxscope.agents import Before, Log
from ctxscope.agents.gemini.events import CONTEXT
from ctxscope.agents.gemini.lines import SESSION
from ctxscope.agents.gemini.parts import spelled
from ctxscope.agents.gemini.points import thought_text
from ctxscope.agents.gemini.replay import replays, tool_calls
from ctxscope.model import NEXT_INPUT, Place, Record, Resume

_NOT_SAID = ("/", "?", CONTEXT, "<hook_context>")
"""How a message begins that the program does not take for something said."""
_NAMED = {"functionCall": "Function Call", "functionResponse": "Function Response"}
_UNWORDED = ("videoMetadata", "thought", "codeExecutionResult", "executableCode", "fileData", *_NAMED, "inlineData")
"""Members that make a part something else than words."""

_CONTEXT = "the context before the conversation is written anew: it names the day, and the folders as they are then"

Message = Mapping[str, Any]


def resume(log: Log, before: Before) -> Resume | None:  # noqa: ARG001 - the face's signature
    """Header, context and the loaded history, then the input; see ``Agent.resume``.

    ``None`` for a subagent's chat, one without a context, and one that ends in a tool call nobody answered.
    """
    chat = replays(log)[0]
    stored = list(_loaded(log))
    context = next((m for m in _contexts(log)), None)
    if not (chat.calls and chat.header and context) or chat.header.get("kind", "main") != "main":
        return None
    history = [turn for message in stored for turn in _turns(message)]
    if _unanswered(history):
        return None
    lines: list[Message] = [
        chat.header,
        {"$set": {"messages": [context]}},
        {"$set": {"sessionId": chat.header["sessionId"]}},
        {"$set": {"messages": [context, *history]}},
        {"id": "next input", "type": "user", "content": [{"text": NEXT_INPUT}]},
    ]
    own = [e for e in log.entries if e.source == SESSION]
    number, where = max(e.place.number for e in own), own[-1].place.log
    records = tuple(
        Record(SESSION, str(at), Place(where, f"line {at}"), spelled(line)) for at, line in enumerate(lines, number + 1)
    )
    return Resume(records, {}, {}, tuple(_changes(stored, history)), (_CONTEXT,))


def _loaded(log: Log) -> Iterator[Message]:
    """The messages of the file as the program reads it, each in its last version where it first stood."""
    found: dict[str, Message] = {}
    for entry in log.entries:
        data, change = entry.data, entry.data.get("$set")
        if entry.source != SESSION or entry.kind == "gone":
            continue
        if entry.kind == "rewind":
            names = list(found)
            at = names.index(data["$rewindTo"]) if data["$rewindTo"] in found else 0
            for name in names[at:]:
                del found[name]
        elif isinstance(data.get("id"), str):
            found[data["id"]] = data
        elif isinstance(change, Mapping) and isinstance(change.get("messages"), Sequence):
            listed = [m for m in change["messages"] if isinstance(m, Mapping) and isinstance(m.get("id"), str)]
            found = {m["id"]: m for m in listed}
    return iter(found.values())


def _contexts(log: Log) -> Iterator[Message]:
    """The first messages of histories that say where the conversation takes place, newest first."""
    for entry in reversed(log.entries):
        change = entry.data.get("$set")
        messages = change.get("messages") if entry.source == SESSION and isinstance(change, Mapping) else None
        first = messages[0] if isinstance(messages, Sequence) and messages else None
        if isinstance(first, Mapping) and _words(first.get("content")).startswith(CONTEXT):
            yield first


def _turns(message: Message) -> Iterator[Message]:
    """What a stored message becomes in the new history."""
    kind, content = message.get("type"), message.get("content")
    if kind == "user":
        words = _words(content).strip()
        if words and not words.startswith(_NOT_SAID):
            yield {"id": message["id"], "type": "user", "content": _parts(content)}
    elif kind == "gemini":
        parts = _parts(content) if content else []
        whole = any(isinstance(p, Mapping) and (p.get("functionCall") or p.get("thought")) for p in parts)
        if not whole:
            calls = [{"functionCall": call} for call in tool_calls(message)]
            parts = [*_thoughts(message), *parts, *calls]
        if parts:
            yield {"id": message["id"], "type": "gemini", "content": parts}
            results = [part for call in _calls(message) for part in _results(call)]
            if results:
                yield {"id": f"{message['id']}_response", "type": "user", "content": results}


def _thoughts(message: Message) -> Iterator[Message]:
    thoughts = message.get("thoughts")
    for thought in thoughts if isinstance(thoughts, list) else ():
        if isinstance(thought, Mapping):
            yield {"text": thought_text(thought), "thought": True}


def _calls(message: Message) -> list[Message]:
    calls = message.get("toolCalls")
    return [c for c in calls if isinstance(c, Mapping)] if isinstance(calls, list) else []


def _results(call: Message) -> list[Any]:
    """What a tool gave, as logged with the call."""
    result = call.get("result")
    if isinstance(result, list):
        return _parts(result)
    if isinstance(result, str) and result:
        response = {"id": call.get("id"), "name": call.get("name"), "response": {"output": result}}
        return [{"functionResponse": response}]
    return [result] if result else []


def _parts(content: Any) -> list[Any]:
    listed = content if isinstance(content, list) else [content]
    return [{"text": part} if isinstance(part, str) else part for part in listed]


def _words(content: Any) -> str:
    """A message as the program shows it to itself: texts, and the kind of what is none."""
    return "".join(_said(part) for part in _parts(content))


def _said(part: Any) -> str:
    if not isinstance(part, Mapping):
        return ""
    kind = next((name for name in _UNWORDED if name in part), None)
    text = part.get("text")
    return f"[{kind}]" if kind else text if isinstance(text, str) else ""


def _unanswered(history: Sequence[Message]) -> bool:
    """Whether a tool call of the last answer has no result: what is put in its place is not known."""
    answered = set(_ids(history, "functionResponse"))
    last = next((m for m in reversed(history) if m["type"] == "gemini"), None)
    return last is not None and not answered.issuperset(_ids([last], "functionCall"))


def _ids(history: Sequence[Message], kind: str) -> list[str]:
    found = [p.get(kind) for m in history for p in m["content"] if isinstance(p, Mapping)]
    return [str(f.get("id")) for f in found if isinstance(f, Mapping)]


def _changes(stored: Sequence[Message], history: Sequence[Message]) -> Iterator[str]:
    """What the loaded history has otherwise than the one that the old process held."""
    lost = sum(len(_calls(m)) for m in stored if m.get("type") == "gemini" and isinstance(m.get("content"), str))
    if lost:
        yield f"the signatures of {_many(lost, 'tool call')} are lost: a constant stands where one must be"
    held = _ids([m for m in stored if m.get("type") == "user" and isinstance(m.get("content"), list)], _RESPONSE)
    now = _ids(history, _RESPONSE)
    more = sum(now.count(name) > held.count(name) > 0 for name in set(now))
    if more:
        yield f"{_many(more, 'tool result')} more {'is' if more == 1 else 'are'} sent twice"
    left = sum(m.get("type") == "user" and not list(_turns(m)) for m in stored) - 1
    if left > 0:
        yield f"{_many(left, 'message')} of the user's that begin{'s' if left == 1 else ''} with / or ? {_ARE[left == 1]} left out"


_RESPONSE = "functionResponse"
_ARE = {True: "is", False: "are"}


def _many(count: int, what: str) -> str:
    return f"one {what}" if count == 1 else f"{count} {what}s"
