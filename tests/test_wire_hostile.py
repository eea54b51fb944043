"""Bodies no client should send, through the whole path: they are shown as what they are, and nothing is ever raised."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import ctxscope
from ctxscope.wire import WireApi
from tests.conftest import SAMPLES
from tests.wire_bodies import APIS, bodies

PATHS = {
    "anthropic-messages": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "gemini": "/v1beta/models/g:streamGenerateContent?alt=sse",
}
ODD = [
    *(
        b"\x00",
        b"\x01",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\r\n",
        b'"',
        b"\\",
        b"\\ud83d",
        b"\\ud800\\ud800",
        b"\\u0000",
    ),
    *(b"}", b"]", b",", b"null", b"NaN", b"-0.0", b"1e999", b"9" * 5000, b"[" * 1500, b'{"content":' * 600, b"data: "),
]
PLAIN = (
    b'{"model":"m","max_tokens":5,"system":[{"type":"text","text":"s"}],"tools":[{"name":"f","input_schema":{}}],"messages":['
    b'{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"b","signature":"cw=="},'
    b'{"type":"tool_use","id":"t","name":"f","input":{"x":1}}]},'
    b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"d"}]}],'
    b'"input":[{"role":"user","content":"a"},{"type":"function_call","call_id":"t","name":"f","arguments":"{}"}],'
    b'"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}]}'
)
"""Something of every API, for damage to be done to."""
ANSWER = (
    b'data: {"type":"message_start","message":{"id":"msg_1","content":[],"usage":{"input_tokens":4,"output_tokens":1}}}\n\n'
    b'data: {"id":"c","choices":[{"delta":{"content":"x","tool_calls":[{"index":0,"id":"t","function":{"name":"f"}}]}}]}\n\n'
    b'data: {"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}\n\n'
    b'data: {"responseId":"r","candidates":[{"content":{"parts":[{"text":"x"}]}}],"usageMetadata":{"promptTokenCount":3}}\n\n'
    b"data: [DONE]\n\n"
)


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """Bytes with a few of them replaced by odd ones, cut out, said twice or left away at the end."""
    data = draw(st.one_of(st.just(whole), bodies))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.one_of(st.just(start), st.integers(start, min(start + 60, len(data))), st.just(len(data))))
        put = draw(st.one_of(st.sampled_from(ODD), st.just(data[max(start - 40, 0) : start]), st.just(b"")))
        data = data[:start] + put + data[end:]
    return data


exchanges = st.lists(st.tuples(damaged(PLAIN), damaged(ANSWER)), min_size=1, max_size=4)


def looked_at(folder: Path) -> int:
    """How many calls an opening of a folder shows; every one is looked at."""
    inspection = ctxscope.open(folder)
    try:
        views = [inspection.view(call.n) for call in inspection.snapshot.calls]
        for view in views:
            if view.call.rebuilt.first_difference is not None:
                assert view.served is not None
                assert view.rebuilt is not None
                at, other = (
                    view.call.rebuilt.first_difference.raw_offset,
                    view.call.rebuilt.first_difference.other_offset,
                )
                assert view.served.data[:at] == view.rebuilt.data[:other]
        return len(views)
    finally:
        inspection.close()


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


@pytest.mark.parametrize("api", APIS, ids=lambda a: a.name)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(said=[(b'{"messages":[{"role":"\\ud800","content":"\\ud83d"}]}', b"")] * 2)
@example(said=[(PLAIN, ANSWER), (b"{}", b"{}"), (b"[]", b"[]"), (PLAIN, ANSWER)])
@example(said=[(b"[" * 100_000, b"[" * 100_000), (PLAIN, b"\xff")])
@example(said=[(PLAIN.replace(b'"a"', b'"a\x01\xff"'), ANSWER)] * 3)
@given(said=exchanges)
def test_a_recording_of_anything_opens(api: WireApi, said: list[tuple[bytes, bytes]], room: Path) -> None:
    wire = room / api.name / "wire"
    shutil.rmtree(wire, ignore_errors=True)
    wire.mkdir(parents=True)
    lines = []
    for n, (request, answer) in enumerate(said, 1):
        (wire / f"{n:04d}.req").write_bytes(request)
        (wire / f"{n:04d}.res").write_bytes(answer)
        lines.append(json.dumps({"n": n, "t": float(n), "path": PATHS[api.name], "headers": {}, "status": 200}))
    (wire / "index.jsonl").write_text("\n".join([*lines, ""]))
    assert looked_at(wire.parent) == len(said)


CASES = ["pi/clean_append", "hermes/sidecar_differs"]


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_session_opens_whatever_was_recorded_of_it(case: str, data: st.DataObject, room: Path) -> None:
    folder = room / case.replace("/", "-")
    if not folder.exists():
        shutil.copytree(SAMPLES / case, folder)
    for kind in ("req", "res"):
        for original in sorted((SAMPLES / case / "wire").glob(f"*.{kind}")):
            copy = folder / "wire" / original.name
            whole = original.read_bytes()
            copy.write_bytes(data.draw(damaged(whole)) if data.draw(st.booleans()) else whole)
    assert looked_at(folder) >= len(list((folder / "wire").glob("*.req")))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "odd",
    [
        b"{}",
        b"[" * 100_000,
        b'{"messages":[{"role":"\\ud800","content":[{"type":"text","text":"\\ud83d"}]}]}',
        b'{"messages":[{"role":"user","content":[{"type":"text","text":"a\x01\xff"}]}]}',
    ],
    ids=["nothing", "deep", "half characters", "no characters"],
)
def test_a_session_opens_with_an_odd_request_in_its_middle(case: str, odd: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "case"
    shutil.copytree(SAMPLES / case, folder)
    requests = sorted((folder / "wire").glob("*.req"))
    requests[len(requests) // 2].write_bytes(odd)
    assert looked_at(folder) >= len(requests)
