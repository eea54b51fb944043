"""Entries as the messages they give the model, before any model's own form (omp.md §4.1, §4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ctxscope.agents.omp import wording
from ctxscope.agents.omp.lines import is_message, pruned_at, stamp
from ctxscope.agents.pi.texts import bash_execution, blocks, string
from ctxscope.model import Entry

FAILED = ("error", "aborted")
"""Stop reasons of answers that later requests leave out."""
CUT = (*FAILED, "length")
_USER_INTERRUPT = 0x0400_0000
"""Flag in ``errorId`` (read in 18.2.3)."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Item:
    """One message of the context and the version of the entry it comes from."""

    entry: Entry
    role: str
    """``user``, ``developer``, ``assistant`` or ``toolResult``."""
    message: Mapping[str, Any]
    stamp: float
    """The message's own time, in milliseconds since the epoch."""
    external: bool = False
    """What it says was restored from a store outside the log."""
    note: bool = False
    """It keeps an interrupted answer before it in the context."""
    live: bool = False
    """It came since the process last built its context from the log, which leaves failed answers out."""

    @property
    def failed(self) -> bool:
        """Whether it is an answer that failed or was aborted."""
        return self.role == "assistant" and self.message.get("stopReason") in FAILED

    @property
    def absent(self) -> bool:
        """Whether it is a failed answer that requests leave out."""
        return self.failed and not (self.live and self.survives)

    @property
    def interrupted(self) -> bool:
        """Whether it is an answer that the user broke off."""
        if self.role != "assistant" or self.message.get("stopReason") != "aborted":
            return False
        flags = self.message.get("errorId")
        flagged = isinstance(flags, int) and bool(flags & _USER_INTERRUPT)
        return flagged or self.message.get("errorMessage") == wording.INTERRUPTED_BY_USER

    @property
    def conversational(self) -> bool:
        """Whether it is the user's own word, which counts for the cache marks of long histories."""
        said = self.role == "user" and self.message.get("synthetic") is not True
        return said and self.message.get("attribution") != "agent"

    @property
    def survives(self) -> bool:
        """Whether it is an answer that requests replay: one cut off while it still thought is not."""
        if self.role != "assistant" or self.message.get("stopReason") not in CUT:
            return self.role == "assistant"
        content = list(blocks(self.message.get("content")))
        content = before_interruption(content) if self.interrupted else content
        return any(b.get("type") in ("text", "toolCall") for b in content)


def items(entry: Entry, *, restored: Mapping[str, Any] | None = None) -> list[Item]:
    """The messages one entry gives the model; none for what is not context.

    ``restored`` is the message it holds as it was before it was shaken, where that is known from an artifact.
    """
    data = entry.data
    if is_message(entry):
        return _message(entry, restored or data["message"], external=restored is not None)
    when = stamp(entry)
    if entry.kind == "custom_message":
        return _custom(entry, restored or data, when, external=restored is not None)
    if entry.kind == "branch_summary" and string(data.get("summary")):
        return [Item(entry, "user", _told(wording.branch_summary(data["summary"])), when)]
    return []


def opening(compaction: Entry) -> list[Item]:
    """What stands for the history a compaction dropped: its summary, with an archive its blocks behind."""
    data = compaction.data
    summary = string(data.get("summary"))
    kept = data.get("preserveData")
    kept = kept if isinstance(kept, Mapping) else {}
    archive = kept.get("snapcompact")
    message = _told(wording.compaction_summary(summary, string(data.get("method"))))
    if isinstance(archive, Mapping) and (found := wording.archive_blocks(archive)):
        message = _told(summary, *found)
    if (remote := remote_items(compaction)) is not None:
        message = {**message, "providerPayload": remote}
    return [Item(compaction, "user", message, stamp(compaction))]


def remote_items(compaction: Entry) -> Mapping[str, Any] | None:
    """History a server compacted and gave back, sent in place of the messages kept (source only)."""
    kept = compaction.data.get("preserveData")
    remote = kept.get("openaiRemoteCompaction") if isinstance(kept, Mapping) else None
    if not isinstance(remote, Mapping) or not isinstance(remote.get("replacementHistory"), list):
        return None
    return {
        "type": "openaiResponsesHistory",
        "provider": remote.get("provider"),
        "items": remote["replacementHistory"],
    }


def before_interruption(content: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """An interrupted answer's blocks without the thinking it was in the middle of."""
    end = len(content)
    while end and content[end - 1].get("type") == "text" and not string(content[end - 1].get("text")).strip():
        end -= 1
    start = end
    while start and _streaming(content[start - 1]):
        start -= 1
    return content[:start] if start < end else content


def _streaming(block: Mapping[str, Any]) -> bool:
    signed = bool(string(block.get("thinkingSignature")))
    return block.get("type") == "thinking" and bool(string(block.get("thinking")).strip()) and not signed


def _said(text: str, *more: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}, *more]}


def _told(text: str, *more: Mapping[str, Any]) -> dict[str, Any]:
    """What omp itself says in the user's place."""
    return {**_said(text, *more), "attribution": "agent"}


def _message(entry: Entry, message: Mapping[str, Any], *, external: bool) -> list[Item]:
    role, when = message.get("role"), stamp(entry)
    if role == "assistant":
        return [] if message.get("retryRecovery") else [Item(entry, "assistant", message, when, external)]
    if role == "user":
        content = wording.steered(message.get("content")) if message.get("steering") is True else message.get("content")
        return [Item(entry, "user", {**message, "content": content}, when, external)]
    if role == "developer":
        return [Item(entry, "developer", message, when, external)]
    if role == "toolResult":
        content = _pruned(message) if pruned_at(entry) is not None and not external else message.get("content")
        return [Item(entry, "toolResult", {**message, "content": content}, when, external)]
    if role in ("custom", "hookMessage"):
        return _custom(entry, message, when, external=external)
    return [] if message.get("excludeFromContext") else _ran(entry, message, when)


def _ran(entry: Entry, message: Mapping[str, Any], when: float) -> list[Item]:
    """Commands the user ran, and files the user named."""
    role = message.get("role")
    if role == "bashExecution":
        said = _said(bash_execution(message), *blocks(message.get("images")))
        return [Item(entry, "user", said, when)]
    if role == "pythonExecution":
        return [Item(entry, "user", _said(wording.python_execution(message)), when)]
    if role != "fileMention":
        return []
    files = blocks(message.get("files"))
    texts = [f for f in files if not isinstance(f.get("image"), Mapping)]
    pictures = [f for f in files if isinstance(f.get("image"), Mapping)]
    found = [Item(entry, "developer", _said(wording.mentioned(texts)), when)] if texts else []
    if pictures:
        images = (f["image"] for f in pictures)
        found.append(Item(entry, "user", _said(wording.mentioned(pictures), *images), when))
    return found


def _custom(entry: Entry, message: Mapping[str, Any], when: float, *, external: bool) -> list[Item]:
    """A message of an extension or of omp itself: for the model a developer's, its images a user's."""
    kind, content = string(message.get("customType")), message.get("content")
    if kind in wording.HIDDEN_TYPES or not isinstance(content, str | list):
        return []
    note, by_user = kind == wording.INTERRUPTED, message.get("attribution") == "user"
    if kind == "collab-prompt" and by_user:
        steered = {"role": "user", "content": wording.steered(content)}
        return [Item(entry, "user", steered, when, external)]
    parts = list(blocks(content))
    pictures = [b for b in parts if b.get("type") == "image"]
    if pictures and not (kind == "skill-prompt" and by_user):
        texts = [b for b in parts if b.get("type") == "text"]
        found = [Item(entry, "developer", {"content": texts}, when, external, note)] if texts else []
        said = {**_said(f"Images attached to {kind}.", *pictures), "attribution": message.get("attribution")}
        return [*found, Item(entry, "user", said, when)]
    role = "user" if (kind == "skill-prompt" and by_user) or _advises(message) else "developer"
    said = {"role": role, "content": parts, "attribution": message.get("attribution")}
    return [Item(entry, role, said, when, external, note)]


def _advises(message: Mapping[str, Any]) -> bool:
    details = message.get("details")
    told = details.get("messageRole") if isinstance(details, Mapping) else None
    return message.get("customType") == "advisor" and told == "user"


def _pruned(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A pruned result's content: its texts as one, where the first stood."""
    parts = blocks(message.get("content"))
    text = "".join(string(b.get("text")) for b in parts if b.get("type") == "text") or "[Output truncated]"
    found: list[Mapping[str, Any]] = []
    for block in parts:
        if block.get("type") != "text":
            found.append(block)
        elif text:
            found.append({"type": "text", "text": text})
            text = ""
    return [{"type": "text", "text": text}, *found] if text else found
