"""A session's sources into its log: records become entries, numbered as seen, and fold in any batches to the same log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ctxscope import agents
from ctxscope.model import Record, SessionRef
from ctxscope.sources import Reader, open_readers


@dataclass(eq=False)
class SessionLog:
    """One session being read."""

    ref: SessionRef
    agent: agents.Agent
    log: agents.Log
    readers: Sequence[Reader]
    conversation: frozenset[str]
    """Keys of the sources that hold the messages."""
    seen: int = 0
    """Entries observed so far."""
    beside: int = 0
    """Entries observed beside the conversation itself (prompts, tools, settings, the agent's own telemetry).

    Each may change what an earlier request is rebuilt to, although none of its messages came again.
    """

    @classmethod
    def open(cls, ref: SessionRef) -> SessionLog:
        """Name its sources; nothing is read before ``poll``."""
        agent = agents.load(ref.agent)
        specs = agent.sources(ref)
        # What grows a message at a time: a log of lines, a table whose rows are rewritten.
        conversation = frozenset(s.key for s in specs if s.kind == "jsonl" or s.mutable)
        return cls(ref, agent, agents.Log(ref), open_readers(specs), conversation)

    def poll(self) -> bool:
        """Read what is new; True when anything was."""
        changed = False
        for reader in self.readers:
            while True:
                records = reader.poll()
                self.fold(records)
                changed = changed or bool(records)
                if not reader.more:
                    break
        return changed

    def fold(self, records: Sequence[Record]) -> None:
        """Add records in the order observed."""
        for record in records:
            for entry in self.agent.entries(record):
                self.log.add(replace(entry, seq=self.seen))
                self.seen += 1
                self.beside += record.source not in self.conversation

    @property
    def partial(self) -> bool:
        """A source holds back an unfinished line."""
        return any(reader.partial for reader in self.readers)

    @property
    def notices(self) -> tuple[str, ...]:
        """What the readers could not read as expected."""
        return tuple(notice for reader in self.readers for notice in reader.notices)

    def close(self) -> None:
        """Give the files back."""
        for reader in self.readers:
            reader.close()
