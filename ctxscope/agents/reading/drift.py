"""What a log holds that its agent's module does not know: record kinds, fields of their envelopes, a newer version.

An agent goes on being developed; what is not understood is counted and told, never guessed at and never an exception.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from ctxscope.agents import Log, shared_memo
from ctxscope.model import Entry, quoted

MOST_NAMES = 6
"""Names told one by one; the rest are counted."""


def kind_by_type(entry: Entry) -> str:
    """The kind most logs state: the member ``type``; empty where there is none."""
    kind = entry.data.get("type")
    return kind if isinstance(kind, str) else ""


def no_version(entry: Entry) -> str | None:  # noqa: ARG001 - a default for ``Dialect.version``
    """For logs that do not say which version wrote them."""
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """What is known of an agent's log."""

    title: str
    kinds: Mapping[str, Collection[str]]
    """Fields of the envelope by record kind; an empty collection: the common ones alone."""
    common: Collection[str] = ()
    """Fields that any record may have."""
    versions: tuple[str, ...] = ()
    """Versions that were checked, oldest first; a newer one is read like the last."""
    kind: Callable[[Entry], str] = kind_by_type
    version: Callable[[Entry], str | None] = no_version
    """The version of the agent that wrote an entry, where it says."""
    sources: Collection[str] = ("session",)
    """Sources whose entries are records of the log; a name with ``:`` counts by what stands before it (``agent:ab12``)."""


@dataclass
class _Counted:
    """What was found in the entries seen so far."""

    rewrites: int
    upto: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    fields: Counter[tuple[str, str]] = field(default_factory=Counter)
    first_kind: Entry | None = None
    first_field: Entry | None = None
    version: str | None = None
    versions: set[str] = field(default_factory=set)


def notices(log: Log, dialect: Dialect) -> tuple[str, ...]:
    """A sentence each: unknown kinds of records, unknown fields of known ones, a version newer than all known."""
    memo = shared_memo(log, "drift")
    counted: _Counted = memo.setdefault(dialect, _Counted(log.rewrites))
    new = log.versions[counted.upto :]
    if counted.rewrites != log.rewrites:  # each entry counts as it is now
        memo[dialect] = counted = _Counted(log.rewrites)
        new = log.entries
    for entry in new:
        if entry.source.partition(":")[0] in dialect.sources and entry.data:
            _count(entry, dialect, counted)
    counted.upto = len(log.versions)
    return tuple(_told(counted, dialect))


def is_newer(version: str, known: Collection[str]) -> bool:
    """Whether a version is later than all known ones, number by number; what has no number is not."""
    return bool(known and _numbers(version) > max(map(_numbers, known)))


def _count(entry: Entry, dialect: Dialect, counted: _Counted) -> None:
    version = dialect.version(entry)
    if version and version not in counted.versions:
        counted.versions.add(version)
        newest = dialect.versions if counted.version is None else (counted.version,)
        if is_newer(version, newest):
            counted.version = version
    kind = dialect.kind(entry)
    known = dialect.kinds.get(kind)
    if known is None:
        counted.kinds[kind] += 1
        counted.first_kind = counted.first_kind or entry
        return
    for name in entry.data:
        if name not in known and name not in dialect.common:
            counted.fields[kind, name] += 1
            counted.first_field = counted.first_field or entry


def _told(counted: _Counted, dialect: Dialect) -> Iterator[str]:
    if counted.version is not None:
        last = dialect.versions[-1]
        yield f"written by {dialect.title} {quoted(counted.version)}, newer than any known here; read like {last}"
    if counted.first_kind is not None:
        names = {kind or "(none)": n for kind, n in counted.kinds.items()}
        many = counted.kinds.total()
        yield (
            f"{many} {'record' if many == 1 else 'records'} of a kind that is not known: {_listed(names)}; "
            f"the first at {counted.first_kind.place}"
        )
    if counted.first_field is not None:
        names = {f"{kind}.{name}" if kind else name: n for (kind, name), n in counted.fields.items()}
        many = counted.fields.total()
        yield (
            f"{many} {'field' if many == 1 else 'fields'} of records not known: {_listed(names)}; "
            f"the first at {counted.first_field.place}"
        )


def _listed(names: Mapping[str, int]) -> str:
    told = [f"{quoted(name[:80])} ({n})" for name, n in sorted(names.items(), key=lambda x: (-x[1], x[0]))]
    more = len(told) - MOST_NAMES
    return ", ".join(told[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"[0-9]{1,9}", version))
