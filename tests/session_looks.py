"""What an inspection says, compared with what a fresh look says of the same files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ctxscope
from ctxscope.session.inspection import Inspection
from tests.session_growth import difference, told


def said(inspection: Inspection) -> Any:
    """What an inspection says, but for what befell the files while it read them."""
    befell = {notice for s in inspection.assembly.sessions for r in s.readers for notice in r.notices}
    snapshot = inspection.snapshot
    return told(replace(snapshot, notices=tuple(n for n in snapshot.notices if n not in befell)))


def agrees(followed: Inspection) -> str | None:
    """Where what is followed parts from what a fresh look says."""
    fresh = ctxscope.open(followed.path)
    fresh.close()
    return difference(said(followed), said(fresh))
