"""Counting in tests: one counter for a file, a vocabulary that remembers, and no way to the network."""

from __future__ import annotations

import socket

import pytest

from ctxscope.analysis import vocabulary
from ctxscope.analysis.tokens import Counter


@pytest.fixture(scope="module")
def counter() -> Counter:
    return Counter()


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_):
        raise AssertionError("counting opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)


class Encoder:
    """Stands for a vocabulary; remembers what it was given."""

    def __init__(self) -> None:
        self.loaded = 0
        self.texts: list[str] = []

    def __call__(self, _: vocabulary.Vocabulary) -> Encoder:
        self.loaded += 1
        return self

    def encode_ordinary(self, text: str) -> list[int]:
        self.texts.append(text)
        return list(range(len(text) // 3 + 1))


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> Encoder:
    found = Encoder()
    monkeypatch.setattr(vocabulary, "encoding", found)
    return found
