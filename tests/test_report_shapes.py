"""Secrets are found by their shape in every spelling a body may use, and ordinary words are left alone."""

from __future__ import annotations

import base64
import json
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.report.escapes import readings
from ctxscope.report.redaction import Redaction

MIXED = "a1B2c3D4" * 6
HEX = "0a1b2c3d" * 5
LOGIN = base64.b64encode(b"ada:open sesame").decode()
SECRETS = [
    f"gsk_{MIXED}",
    f"xai-{MIXED}",
    f"pplx-{MIXED}",
    f"nvapi-{MIXED}_-x",
    f"r8_{MIXED}",
    f"ya29.{MIXED}-_x",
    f"GOCSPX-{MIXED[:28]}",
    f"sk_live_{MIXED[:24]}",
    f"rk_live_{MIXED[:24]}",
    f"whsec_{MIXED[:32]}",
    f"SG.{MIXED[:22]}.{MIXED[:43]}",
    f"dop_v1_{HEX}",
    f"pypi-AgEI{MIXED}",
    f"pypi-{MIXED}",
    f"csk-{MIXED}",
    f"lsv2_pt_{HEX}_0a1b2c3d4e",
    f"tgp_v1_{MIXED}",
    f"123456789:AA{MIXED[:33]}",
    f"sk-ant-api03-{MIXED}",
    f"sk-{MIXED}",
    "-----BEGIN PRIVATE KEY-----\nMIIB" + MIXED + "\n" + MIXED + "\n-----END PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIB" + MIXED,
]
GIVEN_AWAY = [
    (f"Authorization: Basic {LOGIN}", LOGIN),
    (f"use basic {LOGIN} then", LOGIN),
    (f"x-api-key: {HEX}", HEX),
    (f'{{"x-api-key": "{HEX}"}}', HEX),
    ("x-goog-api-key: abcdefghijklmnopqrst", "abcdefghijklmnopqrst"),
    (f"curl -H 'X-Api-Key:{MIXED}'", MIXED),
    (f"AWS_SECRET_ACCESS_KEY={MIXED[:20]}/{MIXED[:19]}", MIXED[:19]),
    (f"bot_token = {HEX}", HEX),
    ("clone https://ada:op3n-sesame@git.example/x", "op3n-sesame"),
    ("postgres://ada:p@ss@db/x", "p@ss"),
    ("redis://:op3n@cache:6379", "op3n"),
    (f"https://{HEX}@git.example/x", HEX),
]
ORDINARY = [
    "a task-list-of-the-many-things-to-do",
    "sk-fading-circle-container-long is a class",
    "model xai-grok-4-fast-reasoning-latest or pplx-70b-online",
    "pip install pypi-some-package-name-that-is-very-long",
    "npm_config_registry_default_value and hf_transfer and r8_max and fw_update_complete_now",
    "MSG.txt in SG. and then",
    "basic understanding of basic authentication, Basic OAuth2Authentication",
    "bearer of good news; Authorization: required since 2019",
    'password: string, "password": {"type": "string", "minLength": 8}',
    'api_key = os.environ["API_KEY_2024"]; api_key: str = Field(default=None, max_length=128)',
    "max_tokens=4096000000, token: 3, the tokens: 12345678",
    "see http://localhost:8080/x@y, http://example.org:443?at=a@b and mail@example.org",
    "/var/root /chroot/root ~/root/ $x/root /rooted /root-dir /srv/home /home",
    '["--root-dir", "--home-page-of-x"] --root-cause-analysis',
    "at 12:34:56, 10:AA",
    "password = base64.b16encode(x); def parse(self, on_token: ByteStreamTokenCallback) -> None",
    "x-api-key: required since 2019",
    r"a \u0041 \n \\ \x41 \q \u00",
]


def spellings(text: str) -> list[str]:
    """A text as bodies write it: bare, in JSON, with every dash and letter escaped, in JSON inside JSON."""
    quoted = json.dumps(text)[1:-1]
    dashes = quoted.replace("-", r"\u002d").replace("_", r"\u005F").replace("/", r"\/")
    every = "".join(f"\\u{ord(c):04x}" for c in text)
    return [text, quoted, dashes, every, json.dumps(dashes)[1:-1], json.dumps(json.dumps(quoted)[1:-1])[1:-1]]


SUPERUSER = PurePosixPath("/", "root").as_posix()
"""Where Linux keeps the superuser's home."""


@pytest.mark.parametrize("secret", SECRETS, ids=lambda s: s[:12])
def test_a_key_is_found_however_the_body_spells_it(secret):
    for spelled in spellings(secret):
        shown = Redaction()(f'{{"text":"use {spelled} now"}}')
        assert shown.startswith('{"text":"use ‹')
        assert spelled[-20:-4] not in shown
        assert "›" in shown
        if "PRIVATE" not in secret or "END" in secret:
            assert shown.endswith('› now"}')


@pytest.mark.parametrize(("text", "secret"), GIVEN_AWAY, ids=lambda s: s[:16])
def test_a_value_is_found_by_what_stands_before_it(text, secret):
    for plain, spelled in zip(spellings(text), spellings(secret), strict=True):
        shown = Redaction()(f"- {plain} -")
        assert spelled not in shown
        assert shown.startswith(f"- {plain[:3]}")
        assert "‹" in shown


@pytest.mark.parametrize("text", ORDINARY, ids=lambda s: s[:24])
def test_ordinary_text_is_left_alone(text):
    for spelled in (text, json.dumps(text), json.dumps(json.dumps(text))):
        assert Redaction("/data/people/bo")(spelled) == spelled


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{SUPERUSER}/x", "‹home·5›/x"),
        (f'cd "{SUPERUSER}"', 'cd "‹home·5›"'),
        (f"file://{SUPERUSER}/x", "file://‹home·5›/x"),
        (r"\/root\/x", r"‹home·6›\/x"),
        (rf"line\n{SUPERUSER}/x", r"line\n‹home·5›/x"),
        (r"\/home\/ada\/x", r"‹home·11›\/x"),
        ("sessions/--root-plums--/a.jsonl", "sessions/‹home·6›-plums--/a.jsonl"),
        ('"--home-ada-plums--"', '"‹home·10›-plums--"'),
    ],
)
def test_home_folders_of_root_and_in_escaped_spelling(text, shown):
    assert Redaction()(text) == shown


@given(st.text(alphabet='ab\\u0041nx"/', max_size=40))
def test_a_reading_leads_back_to_the_text(text):
    for reading in readings(text):
        assert reading.back(0) == 0
        assert reading.back(len(reading.text)) == len(text)
        places = [reading.back(i) for i in range(len(reading.text) + 1)]
        assert places == sorted(set(places))
