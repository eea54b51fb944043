"""What a log keeps of answers that were cut, refused or left: as they came in, piece by piece."""

from __future__ import annotations

from typing import Any

import pytest

from ctxscope.agents import dsh
from tests.dsh_cases import begun, read, sent
from tests.samples.dsh_form import SessionLog

CUT = '{"number": 1'
BUSY = {"kind": "error", "failure": {"code": "SERVER", "status": 500, "message": "later"}}


def chunk(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, **more}


def stream() -> list[dict[str, Any]]:
    """An answer cut inside a tool call."""
    call = {"type": "tool-call", "id": "c1", "name": "sheet", "arguments": CUT}
    return [
        chunk("block-start", index=0, blockType="text"),
        chunk("text-delta", index=0, text="I lo"),
        chunk("text-delta", index=0, text="ok."),
        chunk("block-start", index=1, blockType="tool-call"),
        chunk("tool-call-delta", index=1, id="c1", name="sheet", argumentsDelta=CUT[:4]),
        chunk("tool-call-delta", index=1, id="c1", argumentsDelta=CUT[4:]),
        chunk("block-end", index=0, block={"type": "text", "text": "I look."}),
        chunk("block-end", index=1, block=call),
    ]


def packed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same as v3 and v4 keep it: deltas of a block share a row."""
    found: list[dict[str, Any]] = []
    for row in rows:
        kind = row["type"].removesuffix("-delta")
        if kind == row["type"]:
            found.append({"type": "chunk", "chunk": row})
        elif kind == "tool-call":
            found.append({**row, "type": "tool-call-chunks", "args": [row["argumentsDelta"]]})
        else:
            found.append({"type": f"{kind}-chunks", "index": row["index"], "texts": [row["text"]]})
    return found


def answer(
    log: SessionLog, rows: list[dict[str, Any]], kept: list[dict[str, Any]], reason: dict[str, Any] | None
) -> None:
    """An answer and what its message keeps, in the log's own form."""
    ended = [*rows, chunk("finish", reason=reason)] if reason else rows
    data: dict[str, Any] = {"message": {"role": "assistant", "content": kept, "id": "m"}}
    if log.version:
        log.event(2.0, "assistant/message", {**data, "stream": packed(ended)}, surfaceOp="append")
        return
    numbers = [log.event(2.0, "assistant/chunk", {"turn": 1, "step": 1, "chunk": row}) for row in ended]
    log.event(2.1, "assistant/message", data, surfaceOp="append", sourceEventSeqs=numbers)


KEPT = [{"type": "text", "text": "I look."}]


@pytest.mark.parametrize("version", [0, 3, 4])
@pytest.mark.parametrize("reason", [{"kind": "max-tokens"}, None])
def test_a_tool_call_that_was_cut_is_kept_by_the_stream_and_not_sent(
    version: int, reason: dict[str, Any] | None
) -> None:
    log = begun(version)
    answer(log, stream(), KEPT, reason)
    log.step(3.0, 1, 2)
    held = read(log)
    first, second = dsh.requests(held)
    assert [(b.kind, b.text, b.id) for b in first.blocks] == [("text", "I look.", ""), ("tool_call", CUT, "c1")]
    assert (first.stop.state if first.stop else None) == ("truncated" if reason else None)
    assert "c1" not in str(sent(held, second)["messages"])


@pytest.mark.parametrize("version", [0, 3, 4])
def test_an_answer_that_came_whole_is_told_once(version: int) -> None:
    log = begun(version)
    whole = {"type": "tool-call", "id": "c1", "name": "sheet", "arguments": CUT}
    answer(log, stream(), [*KEPT, whole], {"kind": "tool-calls"})
    (point,) = dsh.requests(read(log))
    assert [b.kind for b in point.blocks] == ["text", "tool_call"]
    assert point.stop.state == "complete"


def test_v0_keeps_what_came_before_an_attempt_failed() -> None:
    log = begun(0)
    for row in [*stream()[:3], chunk("finish", reason=BUSY)]:
        log.event(2.0, "assistant/chunk", {"turn": 1, "step": 1, "chunk": row})
    log.event(2.1, "llm/retry", {"retryId": "r", "retry": 1, "failure": BUSY["failure"]})
    log.event(2.2, "llm/retry-started", {"retryId": "r", "retry": 1})
    answer(log, stream()[:3], [{"type": "text", "text": "I look."}], {"kind": "stop"})
    retry, last = dsh.requests(read(log))
    assert (retry.kind, [b.text for b in retry.blocks], retry.stop.state) == ("retry", ["I look."], "error")
    assert (last.kind, [b.text for b in last.blocks]) == ("main", ["I look."])


def test_packed_rows_of_v0_are_read_as_well() -> None:
    log = begun(0)
    first = len(log.records)
    place = {"turn": 1, "step": 1, "index": 0, "dt": []}
    log.records.append({"type": "text-chunks", "seq0": first, "time0": 1, "data": {**place, "texts": ["I lo", "ok."]}})
    rows = [{"type": "llm/retry", "seq": first + 2, "time": 2, "data": {"retryId": "r", "retry": 1}}]
    log.records += rows
    (point, *_) = dsh.requests(read(log))
    assert (point.kind, [b.text for b in point.blocks]) == ("retry", ["I look."])


def test_a_request_that_was_refused_or_killed_has_what_came_for_its_answer() -> None:
    log = begun(0)
    log.event(2.0, "assistant/chunk", {"turn": 1, "step": 1, "chunk": chunk("finish", reason=BUSY)})
    log.ended(2.1, 1, 1, whole=True)
    held = read(log)
    (refused,) = dsh.requests(held)
    assert (refused.answer.kind, refused.blocks, refused.stop.state) == ("assistant/chunk", None, "error")
    assert dsh.error_line(held, refused) == "SERVER 500 later"
    killed = begun(0)
    for row in stream()[:2]:
        killed.event(2.0, "assistant/chunk", {"turn": 1, "step": 1, "chunk": row})
    killed.event(9.0, "session/end-seed", {})
    (point,) = dsh.requests(read(killed))
    assert [b.text for b in point.blocks] == ["I lo"]


def test_v4_keeps_blocks_that_never_ended() -> None:
    log = begun(4)
    log.event(2.0, "assistant/attempt", {"turn": 1, "step": 1, "stream": packed(stream()[:6])})
    log.event(2.1, "llm/retry", {"retryId": "r", "retry": 1})
    (point, *_) = dsh.requests(read(log))
    assert [(b.kind, b.text) for b in point.blocks] == [("text", "I look."), ("tool_call", CUT)]
