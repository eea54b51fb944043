"""Token ledgers that outlast a launch: kept by all they are a function of, as numbers and names of ours, no text.

A session that is opened again is then neither counted nor summed up nor estimated again, as long as its log says what it
said; once it says more, only the counts of segments are there still.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field, fields
from itertools import groupby
from operator import attrgetter
from typing import Any
from weakref import WeakKeyDictionary

import orjson

from ctxscope.analysis.kept_counts import Kept, name_of
from ctxscope.analysis.overhead import added_by
from ctxscope.analysis.providers import Providers
from ctxscope.analysis.providers.rules import Rules
from ctxscope.analysis.tokens import Counter
from ctxscope.model import CHARGED, Entry, Estimate, SidecarSum, TokenLedger, TokenParts
from ctxscope.session.calls import Slot
from ctxscope.session.deferred import DeferredEntry
from ctxscope.session.fold import SessionLog
from ctxscope.session.snapshot import rules_of, usage_of

_SOURCE = attrgetter("source")
_FIELDS = tuple(f.name for f in fields(TokenLedger))
_WHOLE: dict[str, Callable[..., Any]] = {"parts": TokenParts, "sidecars": SidecarSum}
"""Fields that are several numbers."""
_WHOLE_AT = [(_FIELDS.index(name), made) for name, made in _WHOLE.items()]
_GAP, _ESTIMATES = _FIELDS.index("gap"), _FIELDS.index("estimates")


@dataclass(eq=False, slots=True, repr=False)
class _Digest:
    """A hash of the first so many versions observed in a log, whatever the order of those of different sources."""

    length: int = 0
    told: str = ""
    """With what the log is of."""
    by_source: dict[str, Any] = field(default_factory=dict)

    def extend(self, session: SessionLog) -> None:
        """Take in what was observed since."""
        versions = session.log.versions
        for source, entries in groupby(versions[self.length :], key=_SOURCE):
            made = self.by_source.setdefault(source, hashlib.sha256())
            made.update(b"\n".join(_lines(entries)))
        self.length, ref = len(versions), session.ref
        digests = sorted((source, made.hexdigest()) for source, made in self.by_source.items())
        shelved = sorted((source, made.hexdigest()) for source, made in session.shelved.items())
        told = repr((ref.agent, ref.id, ref.home, ref.directory, digests, shelved))
        self.told = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(eq=False, repr=False)
class KeptLedgers:
    """Ledgers of earlier launches by name, and those of this one until they are kept."""

    counter: Counter
    providers: Providers
    kept: Kept | None
    _found: dict[bytes, bytes] = field(default_factory=dict)
    """Asked for and not yet taken."""
    _held: set[bytes] = field(default_factory=set)
    """Names of those that are kept."""
    _added: dict[int, tuple[Rules, str]] = field(default_factory=dict)
    """By identity of a provider's rules, what stands for all that they add to a request."""
    _digests: WeakKeyDictionary[SessionLog, _Digest] = field(default_factory=WeakKeyDictionary)

    def name(self, slot: Slot, *, as_served: bool) -> bytes | None:
        """What a call's ledger is kept by; ``None`` where something goes into it that nothing here stands for.

        ``as_served``: its log implies the very bytes that were served. A request that differs is rebuilt out of others,
        one that carries only what is new goes on from others. Config and estimates are functions of the log.
        """
        if self.kept is None:
            return None
        heard, told, usage = slot.heard, self._told(slot), usage_of(slot)
        told_by = (usage.reported if usage else None, self._added_by(rules_of(slot, self.providers)))
        if heard is None:
            return _name(told, self.counter.vocabulary(None), slot.kind, *told_by) if told else None
        if heard.api is None or heard.is_continuation or (told is not None and not as_served):
            return None
        vocabulary = self.counter.vocabulary(heard.model)
        return _name(told, vocabulary, slot.kind, *told_by, heard.sha256, heard.api.name, heard.model)

    def _added_by(self, rules: Rules) -> str:
        known = self._added.get(id(rules))
        if known is None or known[0] is not rules:
            known = self._added[id(rules)] = (rules, added_by(rules))
        return known[1]

    def recall(self, names: Iterable[bytes | None]) -> None:
        """Look up some at once."""
        wanted = [name for name in names if name is not None]
        if self.kept is not None and wanted:
            self._found = dict(self.kept.load(wanted))

    def take(self, name: bytes | None) -> TokenLedger | None:
        """One that was recalled."""
        value = self._found.pop(name, None) if name is not None else None
        found = unpacked(value) if value is not None else None
        if found is not None and name is not None:
            self._held.add(name)
        return found

    def keep(self, ledgers: Mapping[bytes, TokenLedger]) -> None:
        """Keep those that are not kept yet for the next launch; none while a vocabulary is missing here."""
        if self.kept is not None and not self.counter.lacks_vocabulary:
            made = {name: packed(ledger) for name, ledger in ledgers.items() if name not in self._held}
            self.kept.keep({name: value for name, value in made.items() if value is not None})
            self._held.update(made)

    def _told(self, slot: Slot) -> str | None:
        """Stands for all that a log says of a call, at its place and elsewhere."""
        return None if slot.session is None or slot.point is None else f"{self._log(slot.session)}{slot.point.key}"

    def _log(self, session: SessionLog) -> str:
        known = self._digests.setdefault(session, _Digest())
        if known.length != len(session.log.versions):
            known.extend(session)
        return known.told


def _name(*stands: object) -> bytes | None:
    return name_of("\0".join(map(str, stands)).encode("utf-8", "surrogatepass"))


def _lines(entries: Iterable[Entry]) -> Iterator[bytes]:
    for entry in entries:
        yield f"{entry.key}\0{entry.kind}".encode("utf-8", "surrogatepass")
        if not isinstance(entry, DeferredEntry):  # what stands on a shelf was hashed when it was read
            yield entry.raw or repr(entry.data).encode("utf-8", "surrogatepass")
    yield b""


def packed(ledger: TokenLedger) -> bytes | None:
    """A ledger as bytes, field by field; ``None`` for one with a number beyond 64 bits."""
    told = {name: getattr(ledger, name) for name in _FIELDS}
    told |= {name: astuple(told[name]) for name in _WHOLE if told[name] is not None}
    told["estimates"] = [
        (e.estimator, e.tokens, [e.charged[name] for name in CHARGED], e.verified) for e in ledger.estimates
    ]
    try:
        return orjson.dumps(list(told.values()))
    except TypeError:
        return None


def unpacked(value: bytes) -> TokenLedger | None:
    """What ``packed`` gave; ``None`` for what has another form."""
    try:
        values = orjson.loads(value)
        if not isinstance(values, list) or len(values) != len(_FIELDS):
            return None
        for at, made in _WHOLE_AT:
            values[at] = None if values[at] is None else made(*values[at])
        values[_GAP] = tuple(values[_GAP])
        values[_ESTIMATES] = tuple(
            [
                Estimate(title, tokens, dict(zip(CHARGED, charged, strict=True)), verified)
                for title, tokens, charged, verified in values[_ESTIMATES]
            ]
        )
        return TokenLedger(*values)
    except (ValueError, TypeError):
        return None
