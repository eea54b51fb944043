"""Counting in tests: one counter for a file, and no way to the network."""

from __future__ import annotations

import socket

import pytest

from ctxscope.analysis.tokens import Counter


@pytest.fixture(scope="module")
def counter() -> Counter:
    return Counter()


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_):
        raise AssertionError("counting opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
