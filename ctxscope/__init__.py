"""ctxscope: what was served to the model, beside what the agent's log can rebuild."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxscope.session.inspection import Inspection

__all__ = ["__version__", "open"]
__version__ = "0.1.0"


def open(  # noqa: A001 - `ctxscope.open` is what a program would look for
    path: str | Path,
    *,
    log: str | None = None,
    recording: str | None = None,
    session: str | None = None,
    provider: str | None = None,
    window: int | None = None,
    tokenizer: str | None = None,
) -> Inspection:
    """Open a log, a recording or a folder that holds them; see ``ctxscope.session.inspection.Inspection``."""
    from ctxscope.session.inspection import Inspection  # noqa: PLC0415 - importing the package must stay cheap

    return Inspection.open(
        Path(path),
        log=log,
        recording=recording,
        session=session,
        provider=provider,
        window=window,
        tokenizer=tokenizer,
    )
