"""What omp's fixed texts and its own notes tell: kinds of requests, causes of differences, what went wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.omp import lines, wording
from ctxscope.agents.omp.lines import BLOB_REF, pruned_at
from ctxscope.agents.omp.points import context_of
from ctxscope.agents.omp.reminder import moment_of
from ctxscope.agents.omp.side_files import MODELS, SETTINGS, UNREADABLE
from ctxscope.agents.omp.store import store
from ctxscope.agents.omp.tree import tree
from ctxscope.agents.pi.lines import is_utf8
from ctxscope.agents.pi.points import API_NAMES
from ctxscope.agents.pi.texts import string
from ctxscope.agents.reading import drift
from ctxscope.model import Body, CallKind, Difference, Endpoint, Entry, Learned, Named, Point, Segment, quoted

_BULK = ("/messages", "/input", "/contents")
_SUMMED = "/system/0/text"
_SESSION = re.compile(rb'session_id\\?":\\?"([^"\\]+)')
_CUT = "[Session persistence truncated large content]"
_START_BYTES = 4000
_TAKEN_OUT = {
    re.compile(r'"type":"(?:input_)?image(?:_url)?"|"inlineData":'): "an image",
    re.compile(r'"type":"thinking"|"reasoning_content":"[^"]'): "thinking",
}


def classify(body: Body) -> CallKind | None:
    """``compaction`` for a request for a summary or a handoff document, ``side`` for one about an image, by fixed texts.

    Else ``None``: such requests may keep the tools of main ones.
    """
    messages = [s for s in body.segments if s.kind == "message"]
    last = _first_of_last(messages)
    if last is not None and b'"' + wording.HANDOFF_ASKED.encode() in body.data[last.start : last.start + _START_BYTES]:
        return "compaction"
    if any(
        b'"' + wording.IMAGE_ASKED.encode() in body.data[s.start : s.end] for s in body.segments if s.kind == "system"
    ):
        return "side"
    if len({s.path.split("/")[2] for s in messages[:4] if s.path.count("/") > 1}) != 1:
        return None
    start = body.data[messages[0].start : messages[0].start + _START_BYTES]
    return "compaction" if b'"' + wording.SUMMARY_ASKED.encode() in start else None


def _first_of_last(messages: Sequence[Segment]) -> Segment | None:
    """The first segment of the last message."""
    root = messages[-1].path.split("/")[2] if messages and messages[-1].path.count("/") > 1 else None
    found = None
    for segment in reversed(messages):
        if root is None or segment.path.split("/")[2:3] != [root]:
            break
        found = segment
    return found


def named(headers: Mapping[str, str], body: Body) -> Named:
    """The session in omp's own header, its cache key or its metadata; chat requests name none."""
    told = headers.get("x-claude-code-session-id")
    if told:
        return Named(told)
    params = body.params if body.params is not None else tuple(s for s in body.segments if s.kind == "param")
    for segment in params:
        raw = body.data[segment.start : segment.end]
        if segment.path == "/prompt_cache_key" and raw[:1] == b'"':
            return Named(raw[1:-1].decode("utf-8", "replace"))
        found = _SESSION.search(raw) if segment.path.startswith("/metadata") else None
        if found is not None:
            return Named(found[1].decode("utf-8", "replace"))
    return Named()


def endpoint(point: Point) -> Endpoint:
    """See ``Agent.endpoint``."""
    provider, model = point.data.get("provider"), point.data.get("model")
    api = API_NAMES.get(str(point.data.get("api")))
    return Endpoint(api, str(provider) if provider else None, str(model) if model else None)


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:
    """Causes omp is known for; ``None`` where it is not."""
    path = difference.path
    if path.startswith(_BULK):
        return _rewritten(log, point, difference) or _missing(log, point, difference)
    if path == _SUMMED and learned.choice.get("checksum"):
        return "the checksum (cch) covers the whole body, and the bodies part further on"
    top = "/" + path.partition("/")[2].partition("/")[0]
    taught: Mapping[str, str] = learned.choice.get("taught", {})
    if top not in taught:
        return None
    was = "with another value" if top in learned.values else "without it"
    was = "with it" if difference.cls == "missing" and top in learned.values else was
    return f"{top[1:]} is not in the log, and the call answered at {taught[top]} was sent {was}"


def _rewritten(log: Log, point: Point, difference: Difference) -> str | None:
    """A tool result that stands pruned in the log although the request was made before."""
    context = context_of(log, point)
    if context is None:
        return None
    moment = moment_of(point) * 1000
    for item in context[0].items[: context[1]]:
        at = pruned_at(item.entry)
        text = "".join(_texts(item.message.get("content"))) if at is not None else ""
        if at is not None and at > moment and text and _excerpt(text) in difference.rebuilt:
            return f"{item.entry.place} was rewritten in place after the request (prune); what was sent is gone from the log"
    return None


def _excerpt(text: str) -> str:
    """Enough of a notice to find it in an excerpt that may begin inside it."""
    return text[1:12]


def _texts(content: object) -> Iterator[str]:
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping) and block.get("type") == "text":
            yield string(block.get("text"))


def _missing(log: Log, point: Point, difference: Difference) -> str | None:
    """An image whose blob is gone, or a text that omp cut when it wrote the log."""
    if BLOB_REF.search(difference.rebuilt) or "blob:sha256:" in difference.rebuilt:
        return "the image lies in a blob that is not there"
    if _CUT in difference.rebuilt:
        return "omp cut the text when it wrote the log (500,000 characters); the request carried all of it"
    for mark, what in _TAKEN_OUT.items():
        if mark.search(difference.served) and not mark.search(difference.rebuilt):
            return f"{what} was sent that the log does not hold: /shake takes it out in place and leaves no note"
    if difference.cls in {"missing", "extra"} and context_of(log, point) is not None:
        return "an extension or hook may have changed the request: what those rewrite is not logged"
    return None


def notices(log: Log) -> Sequence[str]:
    """Lines that could not be read, entries without their parent, failed calls, missing blobs, records not known."""
    known = shared_memo(log, "omp.notices")
    found: list[str] = []
    for entry in log.entries:
        if entry not in known:
            known[entry] = tuple(_notices(entry))
        found += known[entry]
    found += [f"{e.place}: its parent entry is not in the file" for e in tree(log).lost_parents]
    found += _gone(log)
    return (*found, *drift.notices(log, lines.DIALECT))


def _notices(entry: Entry) -> Iterator[str]:
    if entry.kind == "unknown" and not entry.data:
        yield f"{entry.place}: not a JSON object; omp skips it too"
    elif entry.source in (SETTINGS, MODELS) and UNREADABLE in entry.data:
        yield f"{entry.source} file: no YAML mapping that can be read; windows and thresholds it may name are not known"
    elif entry.source == lines.SESSION and not is_utf8(entry.raw):
        yield f"{entry.place}: holds bytes that are no UTF-8; each is read as U+FFFD, as omp does"
    message = entry.data.get("message")
    if isinstance(message, Mapping) and message.get("stopReason") == "error":
        yield f"{entry.place}: the call failed: {quoted(string(message.get('errorMessage')))}"


def _gone(log: Log) -> Iterator[str]:
    """Blobs that a message of the session names and that are not there."""
    memo, held = shared_memo(log, "omp.blobs"), store(log)
    named_by: dict[str, Entry] = memo.setdefault("named", {})
    for entry in log.versions[memo.get("upto", 0) :]:
        if b"blob:sha256:" in entry.raw and entry.source == lines.SESSION:
            for digest in BLOB_REF.findall(entry.raw.decode("utf-8", "replace")):
                named_by.setdefault(digest, entry)
    memo["upto"] = len(log.versions)
    for digest, entry in named_by.items():
        if digest not in held.blobs:
            yield f"{entry.place}: the blob {digest[:12]}… is not there; the image it stands for cannot be rebuilt"
