"""How much of what real agents sent their logs can rebuild: the README's table, from the recorded cases.

``python -m tests.fidelity`` prints it, ``--write`` puts it into the README, where a test compares it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import ctxscope
from ctxscope import agents
from ctxscope.analysis import vocabulary
from ctxscope.model import Learnable, Snapshot
from tests.agent_cases import CASES
from tests.conftest import ROOT

HEAD = "| agent | versions recorded | calls equal ÷ recorded | aside | scope | borrowed, since no log holds it |"
BEGIN, END = "<!-- fidelity: python -m tests.fidelity --write -->", "<!-- end of fidelity -->"
MOST_PATHS = 7
ORDER = ("body", "messages", "semantic", "none")


@dataclass
class Row:
    """One agent's cases together."""

    title: str
    versions: set[str] = field(default_factory=set)
    recorded: int = 0
    equal: int = 0
    aside: int = 0
    """Recorded calls that no log implies: titles, probes, summaries."""
    scopes: set[str] = field(default_factory=set)
    borrowed: dict[str, int] = field(default_factory=dict)
    """Calls by learnable path."""

    def add(self, case: Path) -> None:
        """Open a case as it ended."""
        inspection = ctxscope.open(case)
        snapshot = inspection.snapshot
        self.versions.add(json.loads((case / "case.json").read_text(encoding="utf-8"))["agent_version"])
        for call in snapshot.calls:
            if call.exchange is None or call.api is None:
                continue
            self.recorded += 1
            self.equal += call.rebuilt.state == "equal"
            self.aside += call.entry is None and call.kind in ("side", "compaction", "probe")
            if call.rebuilt.state == "equal":
                assert call.rebuilt.scope is not None
                self.scopes.add(call.rebuilt.scope)
                paths = {p.path for p in inspection.view(call.n).pieces if p.provenance in ("learned", "echoed")}
                for item in {_listed(path, _learnable(snapshot, call.session)) for path in paths}:
                    self.borrowed[item] = self.borrowed.get(item, 0) + 1
        inspection.close()

    @property
    def line(self) -> str:
        """As the README shows it."""
        versions = ", ".join(sorted(self.versions, key=_numbers))
        scopes = ", ".join(scope for scope in ORDER if scope in self.scopes)
        paths = sorted(self.borrowed, key=lambda path: (-self.borrowed[path], path))
        told = ", ".join(f"`{path}`" for path in paths[:MOST_PATHS]) or "nothing"
        more = f" and {len(paths) - MOST_PATHS} more" if len(paths) > MOST_PATHS else ""
        return (
            f"| {self.title} | {versions} | {self.equal} ÷ {self.recorded} | {self.aside} | {scopes} | {told}{more} |"
        )


def _learnable(snapshot: Snapshot, session: str | None) -> tuple[Learnable, ...]:
    return agents.load(next(s.agent for s in snapshot.sessions if s.id == session)).learnable


def _listed(path: str, learnable: tuple[Learnable, ...]) -> str:
    covering = [item.path for item in learnable if item.covers(path)]
    return max(covering, key=lambda covered: covered.count("/"))


def _numbers(version: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", version)]


@cache
def table() -> str:
    """The table, an agent a row."""
    return "\n".join([HEAD, "| --- | --- | --- | --- | --- | --- |", *(row.line for row in rows())])


def rows() -> Iterator[Row]:
    """An agent each, by title."""
    found: dict[str, Row] = {}
    for case in CASES:
        name = case.parent.name
        found.setdefault(name, Row(agents.load(name).title)).add(case)
    yield from sorted(found.values(), key=lambda row: row.title.lower())


def main() -> None:
    """Print the table, or write it into the README."""
    vocabulary.encoding = lambda _: None  # type: ignore[assignment] - tokens are not asked about
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CTXSCOPE_DATA_DIR"] = folder
        made = table()
    if "--write" not in sys.argv:
        sys.stdout.write(f"{made}\n")
        return
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    readme.write_text(f"{before}{BEGIN}\n{made}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
