"""The request for a summary, as far as the log implies it: the conversation as text (opencode.md §5; checked with 1.18.33).

What it asks behind that is not logged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxscope.agents.opencode.history import Asked, Said, cleared_at, mapped
from ctxscope.agents.opencode.served import BULK
from ctxscope.agents.opencode.speech import CLEARED, clean, text_in
from ctxscope.model import Body, Entry, Piece
from ctxscope.wire.blocks import listed, parsed, string
from ctxscope.wire.json_text import js, js_string

LONGEST = 2000
"""Characters of an output that are shown, as JavaScript counts them."""
_OPENS, _CLOSES = "Here is the conversation so far:\n\n<conversation>\n", "\n</conversation>"
_PRIOR = "\n\nHere is the summary of the conversation before the <conversation> above:\n\n<prior-summary>\n"
_PRIOR_CLOSES = "\n</prior-summary>"


def conversation(asked: Asked) -> list[Piece]:
    """The text that is known, as pieces of a JSON string: all messages to be summarised, the summary before them."""
    head, before = _to_summarise(asked)
    pieces = [_derived(_OPENS)]
    written = [(said, list(_lines(said, asked.thread.moment))) for said in head]
    for at, (_, lines) in enumerate([w for w in written if w[1]]):
        pieces += [_derived("\n\n")] if at else []
        for number, (text, entry) in enumerate(lines):
            pieces += [_derived("\n")] if number else []
            pieces.append(Piece(_inside(text), "logged", entry.place))
    pieces.append(_derived(_CLOSES))
    if before is not None:
        pieces += [_derived(_PRIOR), Piece(_inside(_summary_of(before)), "logged", before.entry.place)]
        pieces.append(_derived(_PRIOR_CLOSES))
    return pieces


def asks(body: Body, known: Sequence[Piece]) -> bytes | None:
    """What a served request says behind the known text, as the inside of a JSON string; ``None`` where it is no such request."""
    messages = listed(parsed(body.data).get(BULK.get(body.api or "", "")))
    content = messages[-1].get("content") if messages and isinstance(messages[-1], dict) else None
    text = content if isinstance(content, str) else "".join(string(mapped(b).get("text")) for b in listed(content)[:1])
    end = _PRIOR_CLOSES if any(p.data == _derived(_PRIOR_CLOSES).data for p in known) else _CLOSES
    _, found, rest = text.rpartition(end)
    return _inside(rest) if found else None


def _to_summarise(asked: Asked) -> tuple[list[Said], Said | None]:
    """The messages to be summarised, and the summary of what was before them."""
    read = asked.thread.said[: asked.length]
    question = next((s for s in reversed(read) if s.asks is not None), None)
    part = question.asks if question is not None else None
    history = [s for s in read if s is not question]
    if part is not None and part.data.get("overflow") is True:
        history = _without_last_input(history)
    done = {str(s.entry.data.get("parentID")): s for s in history if s.stands}
    hidden = {*done, *(s.id for s in done.values())}
    tail = part.data.get("tail_start_id") if part is not None else None
    left = [s for s in history if s.id not in hidden]
    at = next((i for i, s in enumerate(left) if s.id == tail), len(left))
    return left[:at], next(reversed(done.values()), None)


def _without_last_input(history: list[Said]) -> list[Said]:
    """Where a request was too large, its input is put aside and said again behind the summary."""
    inputs = [i for i, s in enumerate(history) if s.entry.kind == "user" and s.asks is None]
    return history[: inputs[-1]] if len(inputs) > 1 else history


def _lines(said: Said, moment: float) -> Iterator[tuple[str, Entry]]:
    if said.entry.kind == "user":
        yield from _of_user(said)
        return
    for part in said.parts:
        if part.kind == "text" and text_in(part):
            yield f"[Assistant]: {text_in(part)}", part
        elif part.kind == "reasoning" and text_in(part):
            yield f"[Assistant reasoning]: {text_in(part)}", part
        elif part.kind == "tool":
            yield from ((line, part) for line in _of_tool(part, moment))


def _of_user(said: Said) -> Iterator[tuple[str, Entry]]:
    texts = [p for p in said.parts if p.kind == "text" and not p.data.get("ignored") and text_in(p)]
    for number, part in enumerate(texts):
        yield text_in(part) if number else f"[User]: {text_in(part)}", part
    for part in said.parts:
        if part.kind == "file":
            yield _attached(part.data), part


def _of_tool(part: Entry, moment: float) -> Iterator[str]:
    state = mapped(part.data.get("state"))
    yield f"[Assistant tool call]: {text_in(part, 'tool')}({js(state.get('input'))})"
    if state.get("status") == "completed":
        gone = cleared_at(part)
        files = [_attached(f) for f in listed(state.get("attachments")) if isinstance(f, dict)]
        output = "\n".join([string(state.get("output")), *files])
        yield f"[Tool result]: {CLEARED if gone and gone <= moment else _cut(output)}"
    elif state.get("status") == "error":
        yield f"[Tool error]: {string(state.get('error'))}"


def _attached(file: object) -> str:
    about = mapped(file) if isinstance(file, dict) else {}
    return f"[Attached {about.get('mime')}: {about.get('filename') or 'file'}]"


def _cut(text: str) -> str:
    units = text.encode("utf-16-le", "surrogatepass")
    if len(units) <= 2 * LONGEST:
        return text
    return units[: 2 * LONGEST].decode("utf-16-le", "surrogatepass") + "\n[truncated]"


def _summary_of(said: Said) -> str:
    texts = (text_in(p).strip() for p in said.parts if p.kind == "text")
    return "\n\n".join(t for t in texts if t)


def _derived(text: str) -> Piece:
    return Piece(_inside(text))


def _inside(text: str) -> bytes:
    """A text as the inside of a JSON string."""
    return js_string(clean(text))[1:-1].encode("utf-8", "surrogatepass")
