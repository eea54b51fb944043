"""What may reach disk of headers, addresses, commands and words; nothing else does."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from ctxscope.capture.events import End, Event, Head, Loss, Message, Meta, Request
from ctxscope.capture.secrets import Cutter, command, is_allowed, origin, text
from ctxscope.capture.writer import Writer
from tests.conftest import CAPTURES, needs_captures
from tests.ctxrec_events import PATH, UPSTREAM, read, write

SECRETS = (
    *("Authorization", "X-Api-Key", "x-goog-api-key", "api-key", "Cookie", "Set-Cookie", "Proxy-Authorization"),
    *("anthropic-organization-id", "openai-organization", "openai-project", "chatgpt-account-id", "X-Custom"),
    *("x-codex-auth-token", "x-stainless-idempotency-key", "x-claude-code-user", "sec-websocket-protocol"),
    *("x-deepseek-harness-user-id", "x-msh-device-id", "cf-access-client-secret", "x-amz-security-token"),
)
KEPT = (
    *("content-type", "Content-Encoding", "user-agent", "anthropic-version", "anthropic-beta", "openai-beta"),
    *("openai-processing-ms", "request-id", "x-request-id", "retry-after", "anthropic-ratelimit-tokens-remaining"),
    *("x-ratelimit-limit-requests", "x-stainless-retry-count", "session-id", "session_id", "thread-id", "x-session-id"),
    *("X-Claude-Code-Session-Id", "x-claude-code-agent-id", "x-codex-turn-metadata", "x-codex-window-id", "originator"),
    *("x-client-request-id", "x-deepseek-harness-session-id", "x-deepseek-harness-compact", "x-app", "x-initiator"),
)


@pytest.mark.parametrize("name", KEPT)
def test_what_joins_need_is_kept(name: str):
    assert Cutter().headers(((name, "01a2284d-1672"),)) == [[name, "01a2284d-1672"]]


@pytest.mark.parametrize("name", SECRETS)
def test_all_else_is_cut_and_two_values_can_be_told_apart(name: str):
    cutter = Cutter()
    (_, one), (_, again), (_, other) = cutter.headers(((name, "hunter2"), (name, "hunter2"), (name, "hunter3")))
    assert one.startswith("<cut:7:")
    assert one == again != other
    assert Cutter().headers(((name, "hunter2"),))[0][1] != one


@needs_captures
def test_of_headers_seen_only_secrets_and_devices_are_cut():
    names = {
        name.lower()
        for index in CAPTURES.rglob("wire/index.jsonl")
        for line in index.read_text().splitlines()
        for name in json.loads(line).get("headers") or {}
    }
    assert {n for n in names if not is_allowed(n)} == {
        *("authorization", "x-api-key", "x-goog-api-key", "x-deepseek-harness-user-id"),
        *("x-msh-device-id", "x-msh-device-model", "x-msh-device-name", "x-msh-os-version", "x-msh-platform"),
        *("x-msh-version", "accept-language", "sec-fetch-mode", "x-oai-web-search-eligible"),
    }


@pytest.mark.parametrize(
    ("target", "kept"),
    [
        ("/v1/messages?beta=true", "/v1/messages?beta=true"),
        ("/v1beta/models/g:stream?alt=sse&key=hunter2", "/v1beta/models/g:stream?alt=sse&key=<cut"),
        ("/x?alt=sse;key=hunter2", "/x?alt=<cut"),
        ("/x?hunter2", "/x?<cut"),
        ("/x?%6Bey=hunter2", "/x?%6Bey=<cut"),
        ("http://user:hunter2@host/x", "http://host/x"),
        ("/bot/sk-hunter2hunter2/x", "/bot/<cut:17>/x"),
        ("/x?", "/x?"),
    ],
)
def test_of_a_query_only_known_words_are_kept(target: str, kept: str):
    found = Cutter().target(target)
    assert found.startswith(kept)
    assert "hunter2" not in found


def test_an_origin_has_no_login_or_query():
    assert origin("https://me:hunter2@api.example.com:8443/base?key=hunter2#x") == "https://api.example.com:8443/base"


def test_of_a_command_only_its_name_and_options_are_kept():
    argv = (
        "/opt/bin/pi",
        "--model",
        "m",
        "-p",
        "hunter2",
        "--api-key=hunter2",
        "-khunter2",
        "hunter2",
        "--",
        "--hunter2",
    )
    assert command(argv) == ["pi", "--model", "-p", "--api-key"]
    assert command((r"C:\bin\pi.exe",)) == ["pi.exe"]
    assert command(()) == []


@pytest.mark.parametrize(
    "secret",
    [
        *("sk-ant-api03-abcdefgh", "ghp_abcdefghijkl", "AKIAABCDEFGHIJKL", "eyJhbGciOi.eyJzdWIi", "hunter2"),
        *("01a2284d-1672-7780-8a7c-d97e0b6aaba6", "qX3_vb9LrT0zKd7-WmYp2A", "0123456789abcdef0123456789abcdef"),
    ],
)
def test_words_for_a_person_hold_no_secret(secret: str):
    named = f"OPENAI_API_KEY={secret} 'token': \"{secret}\", password: {secret}; https://me:{secret}@host/ failed"
    assert secret not in text(named)
    assert text(text(named)) == text(named)
    assert len(secret) < 12 or secret not in text(f"upstream said {secret}")


def test_the_token_in_a_proxy_s_path_is_cut():
    rng = random.Random(5)
    for token in ("".join(rng.choices("abcdefghijkABCDEFGHIJK0123456789_-", k=22)) for _ in range(200)):
        found = text(f"ANTHROPIC_BASE_URL=http://127.0.0.1:4100/{token}/api.anthropic.com")
        assert found == f"ANTHROPIC_BASE_URL=http://127.0.0.1:4100/<cut:{len(token)}>/api.anthropic.com"


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("OPENAI_BASE_URL=https://gw.example/v1?code=hunter2pass", "OPENAI_BASE_URL=https://gw.example/v1?code=<cut"),
        ("'https://me:hunter2pass@gw.example:8080/v1'", "'https://gw.example:8080/v1'"),
        ("at https://hunter2pass@gw.example, not there", "at https://gw.example, not there"),
        ("https://gw.example/v1?alt=sse&sig=hunter2pass&beta=true#hunter2pass", "https://gw.example/v1?alt=sse&sig="),
        ("https://gw.example/v1?hunter2pass", "https://gw.example/v1?<cut:11>"),
        ("https://gw.example/v1?alt=hunter2pass$", "https://gw.example/v1?alt=<cut:12>"),
        ("https://gw.example/sk-ant-api03-abc/x?c=hunter2pass#hunter2pass", "https://gw.example/<cut:16>/x?c=<cut"),
        (
            "http://127.0.0.1:4100/abcdefghijklmnop/gw.example/v1?code=hunter2pass",
            "http://127.0.0.1:4100/<cut:16>/",
        ),
        ("GET /v1?code=hunter2pass failed", "GET /v1?code=<cut:11> failed"),
    ],
)
def test_of_an_address_in_words_only_origin_path_and_known_words_stay(words: str, kept: str):
    found = text(words)
    assert found.startswith(kept)
    assert "hunter2pass" not in found
    assert text(found) == found


@pytest.mark.parametrize(
    "words",
    [
        "Cannot connect to host api.anthropic.com:443 ssl:default [Name or service not known]",
        "ClientConnectorCertificateError: certificate verify failed",
        "ANTHROPIC_BASE_URL=http://127.0.0.1:4100/api.anthropic.com",
        "model_providers.ctxscope.supports_websockets=false",
        "is that so?! see https://example.com/docs/page?version=2 (or http://[::1]:80/x)",
        "asks for at most max_tokens=32000 and interleaved-thinking-2025-05-14",
    ],
)
def test_plain_words_stay(words: str):
    assert text(words) == words


def test_no_secret_planted_anywhere_but_in_bodies_is_found_in_the_file(tmp_path: Path):
    planted = [f"PLANTED{n:02d}aB3dE5gH7" for n in range(60)]
    left = iter(planted)
    headers = tuple((name, next(left)) for name in SECRETS)
    meta = Meta(
        1000.0,
        command=(f"/home/me/{'pi'}", "--key", next(left), f"--token={next(left)}", next(left)),
        override=(f"OPENAI_API_KEY={next(left)}", f"http://127.0.0.1:4100/{next(left)}/api.example.com"),
        changes=(f"sends {next(left)}",),
        upstreams=(f"https://u:{next(left)}@api.example.com/?k={next(left)}",),
        notes=(f"token: {next(left)}",),
    )
    query = f"?key={next(left)}&access_token={next(left)}&{next(left)}&alt={next(left)}$"
    login = f"https://me:{next(left)}@api.example.com"
    events: list[Event] = [
        Request(1, 1.0, "GET", PATH + query, login, headers, b"{}"),
        Head(1, 2.0, 101, f"token={next(left)}", tuple((name, next(left)) for name in SECRETS)),
        Message(2, 1, 3.0, "client", "text", b"{}", PATH + query, login),
        Message(2, 1, 3.5, "server", "text", b"{}"),
        End(1, 4.0, "upstream reset", f"https://me:{next(left)}@host said token={next(left)}"),
        Loss(5.0, 1, f"{next(left)} could not be written"),
    ]
    path = write(tmp_path / "a.ctxrec", events, meta)
    assert [secret for secret in planted if secret.encode() in path.read_bytes()] == []
    _, found = read(path)
    assert found[1].upstream == found[2].upstream == UPSTREAM


def test_no_address_told_of_a_recording_brings_a_secret_along(tmp_path: Path):
    told = ("https://gw.example/v1?code=hunter2pass", "https://me:hunter2pass@gw.example/v1")
    meta = Meta(
        1000.0,
        override=tuple(f"OPENAI_BASE_URL={url}" for url in told),
        changes=tuple(f"asks {url} instead" for url in told),
        upstreams=told,
        notes=tuple(f"of {url}: no headers" for url in told),
    )
    events: list[Event] = [Request(n, 1.0, "GET", "/", url) for n, url in enumerate(told, 1)]
    events += [End(n, 2.0, "upstream unreachable", f"{url} refused") for n, url in enumerate(told, 1)]
    path = write(tmp_path / "a.ctxrec", events, meta)
    assert b"hunter2pass" not in path.read_bytes()
    found = read(path)[0].meta
    assert found.upstreams == ("https://gw.example/v1", "https://gw.example/v1")
    assert found.override == (
        "OPENAI_BASE_URL=https://gw.example/v1?code=<cut:11>",
        "OPENAI_BASE_URL=https://gw.example/v1",
    )


def test_the_salt_is_not_on_disk(tmp_path: Path):
    writer = Writer(tmp_path / "a.ctxrec", Meta(1.0))
    writer.write(Request(1, 1.0, "GET", "/", UPSTREAM, (("authorization", "hunter2"),)))
    writer.close()
    data = (tmp_path / "a.ctxrec").read_bytes()
    assert writer._cutter._salt not in data
    assert writer._cutter._salt.hex().encode() not in data


def test_the_token_of_another_proxy_is_cut_from_a_path_and_nothing_else_is():
    word = "NS-MHC-myBpP2a4_CpU58FnSlGzu21Pt"
    cut = Cutter(b"salt").target(f"/{word}/api.anthropic.com/v1/messages?beta=true")
    assert cut.startswith("/<cut:32:")
    assert cut.endswith(">/api.anthropic.com/v1/messages?beta=true")
    same = f"/v1/{word}/api.anthropic.com", f"/{word}/v1/messages", "/v1beta/models/gemini-2.5-pro:generateContent"
    assert [Cutter().target(path) for path in same] == list(same)
