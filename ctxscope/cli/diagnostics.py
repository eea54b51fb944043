"""Everything said on stderr, and every exit code.

stdout is data, stderr is narration: a verb that fails says why in one line and leaves no traceback.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from ctxscope.report.text import visible

if TYPE_CHECKING:
    from ctxscope.model import CtxscopeError

OK = 0
BAD_INPUT = 2
"""Bad input or usage, or output that cannot be written; argparse exits with the same."""
INTERRUPTED = 130
BROKEN_PIPE = 141
"""What a shell reports for a process ended by SIGINT or SIGPIPE."""


def narrate(message: str) -> None:
    """One line on stderr; text of a log or a file name in it cannot reach the terminal as a control sequence.

    Where stderr takes nothing, nothing is said: there is nobody to tell.
    """
    if sys.stderr is None:
        return
    encoding = sys.stderr.encoding or "ascii"
    line = f"ctxscope: {visible(message)}".encode(encoding, "backslashreplace").decode(encoding)
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        _drop(sys.stderr)


def bad_input(told: str) -> CtxscopeError:
    """What to raise. It stands among all the words of the program, which take longer to load than a first screen may."""
    from ctxscope.model import CtxscopeError  # noqa: PLC0415 - likewise

    return CtxscopeError(told)


def guarded(work: Callable[[], int]) -> int:
    """Run ``work`` and turn what stops it into an exit code, the last of its output included."""
    try:
        return _whole(work)
    except BrokenPipeError:
        _drop(sys.stdout)
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        from ctxscope.model import CtxscopeError  # noqa: PLC0415 - as in ``bad_input``

        if not isinstance(error, CtxscopeError):
            raise
        narrate(str(error))
        return BAD_INPUT


def _whole(work: Callable[[], int]) -> int:
    """The exit code of ``work``, once stdout has taken all it had to say."""
    stopped: SystemExit | None = None
    code = OK
    try:
        code = work()
    except SystemExit as leaving:  # argparse, when it has shown its help
        stopped = leaving
    if sys.stdout is not None:
        with writing() as out:
            out.flush()
    if stopped is not None:
        raise stopped
    return code


@contextmanager
def writing() -> Iterator[TextIO]:
    """stdout, to be written to. Raises ``CtxscopeError`` when it takes no more: a full disk, a closed descriptor."""
    if sys.stdout is None:
        raise _no_output(os.strerror(errno.EBADF))
    try:
        yield sys.stdout
    except BrokenPipeError:
        raise
    except OSError as error:
        _drop(sys.stdout)
        raise _no_output(error.strerror or type(error).__name__) from error


def _no_output(why: str) -> CtxscopeError:
    return bad_input(f"standard output: cannot be written: {why}; expected a place that takes it")


def _drop(stream: TextIO) -> None:
    """Keep the interpreter from flushing into what takes nothing once more as it exits."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, stream.fileno())
    os.close(devnull)
