"""Where ctxscope's own files lie.

Those that come with it: in a source checkout at its root, in an installed wheel inside the package. Those it makes: in
its data folder and its cache folder, private to the user.
"""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def themes() -> Path:
    """The folder of bundled themes (``*.toml``)."""
    return _folder("themes")


def sample_sessions() -> Path:
    """The folder of bundled samples (``<agent>/<case>/``)."""
    return _folder("sample_sessions")


def data_folder() -> Path:
    """Where ctxscope keeps what is its own: ``CTXSCOPE_DATA_DIR``, else the platform's place for user data."""
    chosen = os.environ.get("CTXSCOPE_DATA_DIR")
    if chosen:
        return Path(chosen)
    from platformdirs import user_data_dir  # noqa: PLC0415 - only where a session is read

    return Path(user_data_dir("ctxscope", appauthor=False))


def cache_folder() -> Path:
    """Where ctxscope keeps what it could work out again: in a chosen data folder, else the platform's place for caches."""
    if os.environ.get("CTXSCOPE_DATA_DIR"):
        return data_folder() / "cache"
    from platformdirs import user_cache_dir  # noqa: PLC0415 - only where a session is read

    return Path(user_cache_dir("ctxscope", appauthor=False))


def recordings() -> Path:
    """The folder of recordings that were not given a place of their own; may not exist yet."""
    return data_folder() / "recordings"


def own_rules() -> list[Path]:
    """The user's provider rules (``providers/*.toml`` in the platform's place for configuration), in order."""
    from platformdirs import user_config_path  # noqa: PLC0415 - only where a session is read

    return sorted((user_config_path("ctxscope", appauthor=False) / "providers").glob("*.toml"))


def _folder(name: str) -> Path:
    """The wheel's copy if there is one: a checkout has none, and beside an installed package anything may lie."""
    packaged = _PACKAGE / "data" / name
    return packaged if packaged.is_dir() else _PACKAGE.parent / name
