r"""A command run in the foreground as if nothing stood between it and the shell that started us.

It shares our process group, terminal and descriptors, so whatever the terminal sends reaches it without us. We only
pass on what was sent to us alone, stop when it stops, so that the shell gets its prompt, and end as it ends.

Where a signal comes from is asked of the kernel (``sigwaitinfo``: a signal from the terminal has a code above 0). Python
has no such call on macOS: there Ctrl-C, Ctrl-\, Ctrl-Z and a new size are taken to come from the terminal while we are in
its foreground, and all else to be meant for us; a SIGINT that somebody sends to us alone from elsewhere is then not passed on.
A signal sent to the whole group by a program (``kill -- -PGID``) reaches the command twice: nothing tells it apart.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from ctxscope.model import CtxscopeError

NOT_FOUND, NOT_STARTED = 127, 126
"""What a shell reports for a command that is not there, or cannot be executed."""
_BY_SIGNAL = 128

_FROM_TERMINAL = ("SIGINT", "SIGQUIT", "SIGTSTP", "SIGWINCH")
_NAMES = (*_FROM_TERMINAL, "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")


class CannotStartError(CtxscopeError):
    """A command that could not be started; ``code`` is what a shell would report."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended."""

    code: int
    signal: int = 0
    """What killed it; 0: nothing did."""


class Foreground:
    """Holds the signals meant for a command from before anything of ours starts until all of ours is done.

    Signals are blocked for the whole process meanwhile, and the command starts with the mask that we were given.
    """

    def __init__(self) -> None:
        self._held = {s for s in _numbers(_NAMES) if signal.getsignal(s) is not signal.SIG_IGN} | {signal.SIGWINCH}
        self._mask: set[int] = set()
        self._child = 0
        self._over = False
        self._continued = False
        self._before: Any = signal.SIG_DFL

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGCONT, self._note)
        self._mask = set(signal.pthread_sigmask(signal.SIG_BLOCK, self._held))
        return self

    def __exit__(self, *_: object) -> None:
        """Give the signals back; a Ctrl-C that came as the command was ending was the command's, and is dropped."""
        for number in _numbers(_FROM_TERMINAL) & self._held:
            signal.signal(number, signal.signal(number, signal.SIG_IGN))  # what is ignored does not wait
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        signal.signal(signal.SIGCONT, self._before)

    def run(self, argv: Sequence[str], env: Mapping[str, str]) -> Ending:
        """Run a command to its end. Raises ``CannotStartError``, and ``KeyboardInterrupt`` for a Ctrl-C that came before it."""
        if signal.sigpending() & self._held - {signal.SIGWINCH}:
            held = signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
        self._child = self._start(argv, env)
        passing = threading.Thread(target=self._pass_on, name="ctxscope-signals", daemon=True)
        passing.start()
        try:
            return self._wait()
        finally:
            self._over = True
            assert passing.ident is not None
            signal.pthread_kill(passing.ident, signal.SIGWINCH)
            passing.join()
            self._drop_its_own()

    def _drop_its_own(self) -> None:
        """Drop what the command sent to its group, us included, and nobody took before it ended; the rest waits on."""
        if not hasattr(signal, "sigtimedwait"):
            return
        others = []
        while (told := signal.sigtimedwait(self._held, 0)) is not None:
            if told.si_pid != self._child:
                others.append(told.si_signo)
        for number in others:
            os.kill(os.getpid(), number)

    def _start(self, argv: Sequence[str], env: Mapping[str, str]) -> int:
        found = shutil.which(argv[0], path=env.get("PATH"))
        try:
            return os.posix_spawnp(
                found or argv[0],
                list(argv),
                dict(env),
                setsigmask=self._mask,
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # ignored by Python, not by who started us
            )
        except OSError as error:
            missing = error.errno == errno.ENOENT and found is None
            why = "not found" if missing else error.strerror or type(error).__name__
            expected = "expected a command that can be run"
            raise CannotStartError(f"{argv[0]}: {why}; {expected}", NOT_FOUND if missing else NOT_STARTED) from error

    def _note(self, *_: object) -> None:
        self._continued = True

    # --- its end, and its stops ---

    def _wait(self) -> Ending:
        pid = status = 0
        while True:
            if not pid:
                _, status = os.waitpid(self._child, os.WUNTRACED)
            if os.WIFEXITED(status):
                return Ending(os.WEXITSTATUS(status))
            if os.WIFSIGNALED(status):
                return Ending(_BY_SIGNAL + os.WTERMSIG(status), os.WTERMSIG(status))
            pid = 0
            if os.WIFSTOPPED(status) and _terminal_group() is not None:  # without one nobody would continue us
                # The kernel may have stopped us with it (SIGTTIN), and both were continued before we came to look.
                pid, change = self._changed()
                if not pid and self._stop(os.WSTOPSIG(status)):
                    pid, change = self._changed()
                    if not pid:  # we alone were continued
                        os.kill(self._child, signal.SIGCONT)
                status = change

    def _changed(self) -> tuple[int, int]:
        """What became of the command since it was last waited for; a pid of 0: nothing."""
        return os.waitpid(self._child, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)

    def _stop(self, by: int) -> bool:
        """Stop as the command did until somebody continues us, and whether that happened: not where no shell could."""
        by = signal.SIGTSTP if by == signal.SIGSTOP else by  # the kernel drops it in a group without a shell above it
        self._continued = False
        # First sent, then let in: with it comes the terminal's own, if it still waits; one stop, and SIGCONT takes both away.
        signal.pthread_kill(threading.get_ident(), by)
        before = signal.pthread_sigmask(signal.SIG_UNBLOCK, {by})
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return self._continued

    # --- what is sent to us ---

    def _pass_on(self) -> None:
        while True:
            number, ours_alone = self._next()
            if self._over:
                return
            if ours_alone:
                with suppress(ProcessLookupError):
                    os.kill(self._child, number)

    def _next(self) -> tuple[int, bool]:
        """The next signal, and whether it was sent to us alone."""
        if hasattr(signal, "sigwaitinfo"):
            told = signal.sigwaitinfo(self._held)
            # a terminal that is closed tells the leader of its session, and nobody else
            alone = told.si_code <= 0 or (told.si_signo == signal.SIGHUP and os.getsid(0) == os.getpid())
            return told.si_signo, alone and told.si_pid != self._child
        number = int(signal.sigwait(self._held))
        return number, not (number in _numbers(_FROM_TERMINAL) and _terminal_group() == os.getpgrp())


def end_like(ending: Ending) -> int:
    """The exit code that tells how a command ended; where a signal killed it, die by the same, without a core."""
    if ending.signal:
        import resource  # noqa: PLC0415 - POSIX only

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        with suppress(OSError):  # SIGKILL has no handler to reset
            signal.signal(ending.signal, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {ending.signal})
        os.kill(os.getpid(), ending.signal)
    return ending.code


def _numbers(names: Sequence[str]) -> set[int]:
    return {getattr(signal, name) for name in names}


def _terminal_group() -> int | None:
    """The process group in the foreground of our terminal; ``None`` where we have none."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return None
    try:
        return os.tcgetpgrp(terminal)
    except OSError:
        return None
    finally:
        os.close(terminal)
