"""Captures of other tools made by hand, in the shapes their tools write."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from ctxscope.capture import importers
from ctxscope.capture.importers.imported import Imported

BIG = 512
"""claude-tap puts values from this size on apart."""


def loaded(path: Path, name: str | None = None) -> tuple[list[Imported], list[str]]:
    """The exchanges of a capture, in the order they stand there, and what it could not read."""
    capture = importers.load(name or importers.choose(path)).read(path)
    return [item.load() for item in capture.items], list(capture.problems)


def wire_bodies(folder: Path, kind: str) -> list[bytes]:
    """The recorded bodies beside a capture, by number."""
    return [path.read_bytes() for path in sorted((folder / "wire").glob(f"*.{kind}"))]


# --- mitmproxy -------------------------------------------------------------------------------------------------------


def tnetstring(value: Any) -> bytes:
    """A value as mitmproxy spells it."""
    if value is None:
        return b"0:~"
    if isinstance(value, bool):
        return b"4:true!" if value else b"5:false!"
    if isinstance(value, dict):
        body, mark = b"".join(tnetstring(k) + tnetstring(v) for k, v in value.items()), b"}"
    elif isinstance(value, list | tuple):
        body, mark = b"".join(map(tnetstring, value)), b"]"
    elif isinstance(value, bytes):
        body, mark = value, b","
    elif isinstance(value, str):
        body, mark = value.encode(), b";"
    else:
        body, mark = repr(value).encode(), b"#" if isinstance(value, int) else b"^"
    return b"%d:%b%b" % (len(body), body, mark)


def flow(time: float = 1000.0, body: bytes | None = b'{"a":1}', **more: Any) -> dict[str, Any]:
    """A flow as its state, answered a second later unless told otherwise."""
    request = {
        "path": b"/v1/messages?beta=true",
        "authority": b"",
        "scheme": b"https",
        "method": b"POST",
        "port": 443,
        "host": "api.anthropic.com",
        "timestamp_end": time + 0.1,
        "timestamp_start": time,
        "content": body,
        "headers": [[b"X-Api-Key", b"sk-secret"], [b"content-type", b"application/json"]],
        "http_version": b"HTTP/1.1",
        **more.pop("request", {}),
    }
    response = {
        "reason": b"OK",
        "status_code": 200,
        "timestamp_end": time + 2,
        "timestamp_start": time + 1,
        "content": b'{"ok":true}',
        "headers": [[b"request-id", b"req_1"]],
        "http_version": b"HTTP/1.1",
    }
    return {
        "websocket": None,
        "response": response,
        "request": request,
        "server_conn": {"sni": "api.anthropic.com", "address": ["203.0.113.9", 443]},
        "client_conn": {"proxy_mode": "regular"},
        "error": None,
        "id": f"flow-{time}",
        "type": "http",
        "version": 21,
        **more,
    }


def flows(path: Path, *states: Any) -> Path:
    path.write_bytes(b"".join(state if isinstance(state, bytes) else tnetstring(state) for state in states))
    return path


# --- HAR -------------------------------------------------------------------------------------------------------------


def entry(text: str | None = '{"a":1}', when: str = "2026-11-29T17:20:01.500000+00:00", **more: Any) -> dict[str, Any]:
    """An entry, answered after 900 ms, whole after 1 s."""
    size = {} if text is None else {"bodySize": len(text.encode("utf-8", "surrogateescape"))}
    posted = {} if text is None else {"postData": {"mimeType": "application/json", "text": text}}
    request = {
        "method": "POST",
        "url": "https://user:pw@API.openai.com:443/v1/chat/completions?x=%20y#top",
        "headers": [{"name": "Authorization", "value": "Bearer sk-secret"}],
        **size,
        **posted,
        **more.pop("request", {}),
    }
    response = {
        "status": 200,
        "statusText": "OK",
        "headers": [{"name": "content-encoding", "value": "gzip"}, {"name": "content-type", "value": "text/plain"}],
        "content": {"size": 5, "text": "hello"},
    }
    return {
        "startedDateTime": when,
        "time": 1000,
        "timings": {"connect": -1, "send": 100, "wait": 800, "receive": 100},
        "request": request,
        "response": response,
        **more,
    }


def har(path: Path, *entries: Any) -> Path:
    path.write_text(json.dumps({"log": {"version": "1.2", "creator": {"name": "t"}, "entries": list(entries)}}))
    return path


# --- claude-tap ------------------------------------------------------------------------------------------------------


def tap_record(turn: int, ended: str, messages: list[Any], **more: Any) -> dict[str, Any]:
    """A record of claude-tap, written when its call had ended."""
    return {
        "timestamp": ended,
        "request_id": f"req_{turn:012x}",
        "turn": turn,
        "duration_ms": 2000,
        "request": {
            "method": "POST",
            "path": "/v1/messages?beta=true",
            "headers": {"x-api-key": "sk-ant-secre...", "Content-Type": "application/json"},
            "body": {"model": "m", "messages": messages, "tools": [{"name": "look", "description": "é" * BIG}]},
        },
        "response": {
            "status": 200,
            "headers": {"Content-Type": "application/json", "Content-Encoding": "gzip"},
            "body": {"id": f"msg_{turn}", "content": [{"type": "text", "text": "yes"}]},
        },
        "upstream_base_url": "https://api.anthropic.com",
        **more,
    }


def tap_lines(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
    return path


def tap_bundle(path: Path, records: list[Any]) -> Path:
    blobs: dict[str, Any] = {}
    compact = [_wrapped(record, blobs) for record in records]
    bundle = {
        "__claude_tap_compact_trace__": {"version": 1, "encoding": "json-blob-ref", "record_count": len(compact)},
        "records": compact,
        "blobs": {name: {"kind": "json", "payload": value} for name, value in blobs.items()},
    }
    path.write_text(json.dumps(bundle, ensure_ascii=False) + "\n")
    return path


def tap_store(path: Path, records: list[Any], *, wal: bool = False) -> sqlite3.Connection:
    """A store with one session; the connection is the writer's, for the caller to close."""
    blobs: dict[str, Any] = {}
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode={'WAL' if wal else 'DELETE'}")
    connection.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, started_at TEXT)")
    connection.execute(
        "CREATE TABLE records (session_id TEXT, record_index INTEGER, turn INTEGER, timestamp TEXT, payload_json TEXT,"
        " PRIMARY KEY (session_id, record_index))"
    )
    connection.execute("CREATE TABLE record_blobs (session_id TEXT, hash TEXT, kind TEXT, payload_json TEXT)")
    for index, record in enumerate(records, 1):
        payload = json.dumps(_wrapped(record, blobs), ensure_ascii=False)
        row = ("s1", index, record.get("turn"), record.get("timestamp"), payload)
        connection.execute("INSERT INTO records VALUES (?,?,?,?,?)", row)
    rows = [("s1", name, "json", json.dumps(value, ensure_ascii=False)) for name, value in blobs.items()]
    connection.executemany("INSERT INTO record_blobs VALUES (?,?,?,?)", rows)
    connection.commit()
    return connection


def tap_store_closed(path: Path, records: list[Any]) -> Path:
    with closing(tap_store(path, records)):
        return path


def _wrapped(record: dict[str, Any], blobs: dict[str, Any]) -> dict[str, Any]:
    """A record with its large tools and messages put apart."""
    body = record["request"]["body"]
    if not isinstance(body, dict):
        return record
    apart = {
        **body,
        "tools": _apart(body.get("tools"), blobs),
        "messages": [_apart(m, blobs) for m in body.get("messages", [])],
    }
    marker = {"version": 1, "encoding": "json-blob-ref", "refs": []}
    inner = {**record, "request": {**record["request"], "body": apart}}
    return {"__claude_tap_compact_record__": marker, "record": inner}


def _apart(value: Any, blobs: dict[str, Any]) -> Any:
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    if len(data) < BIG:
        return value
    name = "sha256:" + sha256(data).hexdigest()
    blobs[name] = value
    return {"__claude_tap_blob_ref__": {"version": 1, "kind": "json", "hash": name, "bytes": len(data)}}
