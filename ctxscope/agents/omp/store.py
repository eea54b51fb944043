"""What an omp log keeps outside itself: images as blobs, shaken regions in artifacts (omp.md §2, §3, §5)."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.omp.lines import ARTIFACT, BLOB, BLOB_REF, SESSION, pruned_at
from ctxscope.agents.omp.wording import SHAKEN
from ctxscope.agents.pi.texts import string
from ctxscope.model import Entry

_REGION = re.compile(r"### region (\d+) \([^\n]*, ~\d+ tok\)\n\n")


@dataclass(eq=False, slots=True)
class Store:
    """Side files seen so far."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    """By hash; raw bytes."""
    artifacts: dict[str, str] = field(default_factory=dict)
    """By id: the text of ``<id>.shake.log``."""
    read: int = 0
    """Versions of entries looked at."""
    version: int = 0
    """Counts the side files seen; what was rendered without one may change once it is there."""
    shaken: int = 0
    """Counts what was learned of shaken regions: an artifact, an earlier moment."""
    _moments: dict[str, float] = field(default_factory=dict)
    """By artifact: when its regions were shaken, in milliseconds since the epoch, as the results among them say."""
    _base64: dict[str, str] = field(default_factory=dict)

    def image(self, data: str) -> tuple[str, bool]:
        """An image's base64, and whether it came from a blob; a reference to one that is not there stays as it is."""
        found = BLOB_REF.fullmatch(data)
        if found is None or found[1] not in self.blobs:
            return data, False
        if found[1] not in self._base64:
            self._base64[found[1]] = base64.b64encode(self.blobs[found[1]]).decode()
        return self._base64[found[1]], True

    def unshaken(self, text: str) -> tuple[str, bool]:
        """A text with its shaken regions put back, and whether any was; regions without their artifact stay shaken."""
        restored = False

        def original(found: re.Match[str]) -> str:
            nonlocal restored
            region = self._region(found[1], found[2])
            restored = restored or region is not None
            return found[0] if region is None else region

        return (SHAKEN.sub(original, text), restored) if "[shaken ~" in text else (text, False)

    def shaken_at(self, entry: Entry) -> float | None:
        """When an entry was shaken, as another one shaken into the same artifact says."""
        named = SHAKEN.findall(entry.raw.decode("utf-8", "replace"))
        moments = (self._moments.get(artifact) for artifact, _ in named)
        return min((m for m in moments if m is not None), default=None)

    def take(self, entry: Entry) -> None:
        """Look at one version of an entry, of the log or of a side file."""
        if entry.kind == "blob":
            self.blobs[entry.source.removeprefix(BLOB)] = entry.raw
            self.version += 1
        elif entry.kind == "artifact" and entry.source.endswith(".shake.log"):
            name = entry.source.removeprefix(ARTIFACT).partition(".")[0]
            self.artifacts[name] = entry.raw.decode("utf-8", "replace")
            self.version += 1
            self.shaken += 1
        elif entry.source == SESSION and b"[shaken ~" in entry.raw and (at := pruned_at(entry)) is not None:
            for artifact, _ in SHAKEN.findall(entry.raw.decode("utf-8", "replace")):
                if at < self._moments.get(artifact, float("inf")):
                    self._moments[artifact] = at
                    self.shaken += 1

    def _region(self, artifact: str, number: str) -> str | None:
        text = self.artifacts.get(artifact)
        if text is None:
            return None
        start = next((m.end() for m in _REGION.finditer(text) if m[1] == number), None)
        if start is None:
            return None
        following = (m.start() for m in _REGION.finditer(text, start) if m[1] == str(int(number) + 1))
        end = next(following, None)
        # A region ends with an empty line, the last one with the end of its line.
        return text[start : end - 2] if end is not None else text[start:].removesuffix("\n")


def store(log: Log) -> Store:
    """The side files of a session as far as its log goes."""
    memo = shared_memo(log, "omp.store")
    found: Store = memo.setdefault("store", Store())
    for entry in log.versions[found.read :]:
        found.take(entry)
    found.read = len(log.versions)
    return found


def unshaken(message: Mapping[str, Any], held: Store) -> Mapping[str, Any] | None:
    """A message as it was before it was shaken; ``None`` where nothing of it can be put back."""
    content = message.get("content")
    if isinstance(content, str):
        text, restored = held.unshaken(content)
        return {**message, "content": text} if restored else None
    if not isinstance(content, list):
        return None
    found, any_restored = [], False
    for block in content:
        if isinstance(block, Mapping) and block.get("type") == "text":
            text, restored = held.unshaken(string(block.get("text")))
            any_restored = any_restored or restored
            found.append({**block, "text": text} if restored else block)
        else:
            found.append(block)
    return {**message, "content": found} if any_restored else None
