"""Everything said on stderr, and every exit code.

stdout is data, stderr is narration: a verb that fails says why in one line and leaves no traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from ctxscope.model import CtxscopeError
from ctxscope.report.text import visible

OK = 0
BAD_INPUT = 2
"""Bad input or usage; argparse exits with the same."""
INTERRUPTED = 130
BROKEN_PIPE = 141
"""What a shell reports for a process ended by SIGINT or SIGPIPE."""


def narrate(message: str) -> None:
    """One line on stderr; text of a log or a file name in it cannot reach the terminal as a control sequence."""
    encoding = sys.stderr.encoding or "ascii"
    line = f"ctxscope: {visible(message)}".encode(encoding, "backslashreplace").decode(encoding)
    print(line, file=sys.stderr)


def guarded(work: Callable[[], int]) -> int:
    """Run ``work`` and turn what stops it into an exit code."""
    try:
        code = work()
        sys.stdout.flush()
    except CtxscopeError as error:
        narrate(str(error))
        return BAD_INPUT
    except BrokenPipeError:
        _drop_stdout()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _drop_stdout() -> None:
    """Keep the interpreter from flushing into the closed pipe once more as it exits."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)
