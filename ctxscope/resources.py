"""Where the files that come with ctxscope lie: in a source checkout at its root, in an installed wheel inside the package."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def themes() -> Path:
    """The folder of bundled themes (``*.toml``)."""
    return _folder("themes")


def sample_sessions() -> Path:
    """The folder of bundled samples (``<agent>/<case>/``)."""
    return _folder("sample_sessions")


def _folder(name: str) -> Path:
    """The wheel's copy if there is one: a checkout has none, and beside an installed package anything may lie."""
    packaged = _PACKAGE / "data" / name
    return packaged if packaged.is_dir() else _PACKAGE.parent / name
