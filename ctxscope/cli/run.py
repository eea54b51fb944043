"""Run an agent with its calls recorded: starts it pointed at a recording proxy.

The agent has the terminal; what there is to say is said before it starts and after it has ended.
"""

from __future__ import annotations

import argparse
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ctxscope import resources
from ctxscope.cli import target
from ctxscope.cli.diagnostics import narrate
from ctxscope.cli.foreground import CannotStartError, Ending, Foreground, end_like
from ctxscope.cli.overlay import OverlayFolder, settle_left, watched
from ctxscope.model import CtxscopeError, Override, Snapshot, Start

if TYPE_CHECKING:
    from ctxscope.capture.events import Event
    from ctxscope.capture.proxy import Proxy
    from ctxscope.capture.recorder import Recorder
    from ctxscope.session.launching import Launch

DRAIN_SECONDS = 2.0
"""For replies still on their way when the agent has ended, to a process it left behind."""
_WRITER = "ctxscope.session.placing"
"""The process that writes the recording, and notes where the agent's logs stand."""
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_LOOPBACK = "127.0.0.1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare options and positionals."""
    parser.add_argument("--agent", metavar="NAME", help="which agent it is, where the command does not tell")
    parser.add_argument(
        "--forward",
        action="store_true",
        help="leave base URLs alone and record through HTTPS_PROXY, with an authority that only this process trusts",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="the recording; default: a new one in the data folder")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD …", help="the agent's command line")


def run(args: argparse.Namespace) -> int:
    """Start the proxy, the recorder and the agent, and end as the agent ends."""
    command = tuple(args.command[1:] if args.command[:1] == ["--"] else args.command)
    if not command:
        raise CtxscopeError("no command; expected one behind two dashes, such as: ctxscope run -- hermes chat")
    if not hasattr(os, "posix_spawn"):
        raise CtxscopeError("run: this system has no POSIX processes and signals; expected Linux or macOS")
    _refuse(args.output)
    start = Start(command, dict(os.environ), target.own_home(), Path.cwd())
    for sentence in settle_left(_overlays()):
        narrate(sentence)
    try:
        with ExitStack() as last, Foreground() as foreground:
            ending = _run(foreground, last, start, args)
    except CannotStartError as error:
        narrate(str(error))
        return error.code
    return end_like(ending)


@dataclass(frozen=True, slots=True)
class _Way:
    """How the agent is started, be it pointed at the proxy or behind it."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    how: tuple[str, ...]
    changes: tuple[str, ...] = ()


def _run(foreground: Foreground, last: ExitStack, start: Start, args: argparse.Namespace) -> Ending:
    """Run the agent; what is left for ``last`` happens when signals are our own again."""
    told: list[str] = []
    recorders: list[Recorder] = []
    try:
        proxy = _proxy(recorders, told.append, forward=args.forward)
    except (CtxscopeError, ImportError, OSError, RuntimeError) as error:
        return _unrecorded(foreground, last, start, f"the proxy does not start: {error}")
    last.callback(proxy.stop, 0)
    from ctxscope.session.launching import launch  # noqa: PLC0415 - the parser must answer without it

    try:
        found = launch(start, args.agent, _through(proxy))
    except _NoWayError as error:
        return _unrecorded(foreground, last, start, str(error))
    path = _recording(args.output, found.agent)
    with ExitStack() as stack:
        way = _behind(proxy, found, start, stack) if args.forward else _pointed(found.override, start, stack, told)
        recorder = _recorder(path, start, found, way, proxy, told.append)
        recorders.append(recorder)
        _say_start(path, found, way, forward=args.forward)
        try:
            ending = foreground.run(way.argv, way.env)
        except CannotStartError:
            recorder.close()
            path.unlink(missing_ok=True)
            raise
        last.callback(_finish, proxy, recorder, path, found, way, told)
        return ending


class _NoWayError(Exception):
    """A server that the proxy cannot lead to; says why."""


def _through(proxy: Proxy) -> Callable[[str], str]:
    from ctxscope.capture.secrets import text  # noqa: PLC0415 - as below

    def through(url: str) -> str:
        try:
            return proxy.through(url)
        except CtxscopeError as error:
            raise _NoWayError(text(str(error))) from error

    return through


def _unrecorded(foreground: Foreground, last: ExitStack, start: Start, why: str) -> Ending:
    """Run the agent as it is: it would reach its servers otherwise than the user wants it to, or not at all."""
    narrate(f"NOTHING IS RECORDED: {why}. The agent runs as without ctxscope")
    ending = foreground.run(start.argv, start.env)
    last.callback(narrate, f"NOTHING WAS RECORDED: {why}")
    return ending


def _proxy(recorders: Sequence[Recorder], told: Callable[[str], None], *, forward: bool) -> Proxy:
    """A proxy at work. It stands before its recorder, which stores how the agent was pointed at it."""
    from ctxscope.capture.proxy import Proxy  # noqa: PLC0415 - the parser must answer without it

    def store(event: Event) -> None:
        recorders[0](event)

    proxy = Proxy(store, forward=forward, environment_proxies=True, told=told)
    proxy.start()
    return proxy


def _recorder(
    path: Path, start: Start, found: Launch, way: _Way, proxy: Proxy, told: Callable[[str], None]
) -> Recorder:
    from ctxscope.capture.events import Meta  # noqa: PLC0415 - as above
    from ctxscope.capture.recorder import Recorder  # noqa: PLC0415 - as above
    from ctxscope.capture.secrets import command  # noqa: PLC0415 - as above
    from ctxscope.session.launching import FALLBACK  # noqa: PLC0415 - as above

    meta = Meta(
        time=time.time(),
        agent="" if found.agent == FALLBACK else found.agent,
        command=tuple(command(start.argv)),
        override=way.how,
        changes=way.changes,
        upstreams=proxy.upstreams,
        home=str(start.home),
    )
    return Recorder(path, meta, told, process=_WRITER)


# --- how the agent is started ---


def _pointed(override: Override, start: Start, stack: ExitStack, told: list[str]) -> _Way:
    """With base URLs that lead to the proxy, and not by way of the user's own proxy."""
    env = {name: value for name, value in start.env.items() if name not in override.unset} | dict(override.env)
    if override.overlay:
        overlay = OverlayFolder.make(override.overlay, _overlays())
        stack.enter_context(watched(overlay, told.append))
        env[override.overlay.variable] = str(overlay.view)
    if any(env.get(name) or env.get(name.lower()) for name in _PROXIES):
        past = env.get("no_proxy") or env.get("NO_PROXY") or ""
        if past.strip() != "*":
            env |= dict.fromkeys(("NO_PROXY", "no_proxy"), f"{past},{_LOOPBACK}".lstrip(","))
    return _Way(override.argv, env, override.how, override.changes)


def _behind(proxy: Proxy, found: Launch, start: Start, stack: ExitStack) -> _Way:
    """With the proxy as the one that leads out, and trust in its authority. Raises ``CtxscopeError`` where that is no way."""
    if not found.forward:
        raise CtxscopeError(
            f"{found.title}: takes no proxy and authority from its environment, so --forward cannot record it; "
            "expected ctxscope run without --forward"
        )
    try:
        folder = resources.data_folder()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        alone, bundle = proxy.write_ca(Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder))))
    except OSError as error:
        raise CtxscopeError(
            f"{folder}: cannot be written: {error.strerror}; expected a place for certificates"
        ) from error
    given = {"ca": alone, "bundle": bundle, "proxy": proxy.forward_url}
    trust = {name: value.format_map(given) for name, value in found.forward.items()}
    urls = {name: proxy.forward_url for upper in _PROXIES for name in (upper, upper.lower())}
    env = {**start.env, **found.assigned, **trust, **urls}
    past = _passed_by(proxy.upstreams, env.get("no_proxy") or env.get("NO_PROXY") or "")
    if past:
        env = {name: value for name, value in env.items() if name.lower() != "no_proxy"}
    return _Way(
        found.plain,
        env,
        (f"HTTPS_PROXY={proxy.forward_url}, and HTTP_PROXY and ALL_PROXY", *(f"{n}={v}" for n, v in trust.items())),
        ("its calls go over HTTP/1.1, whatever it would have spoken",)
        + ((f"NO_PROXY is taken away, since it names {past}",) if past else ()),
    )


def _passed_by(upstreams: Sequence[str], no_proxy: str) -> str:
    """The first host to be recorded that NO_PROXY would keep from the proxy; empty: none."""
    names = [name.strip().lower().lstrip("*.").partition(":")[0] for name in no_proxy.split(",") if name.strip()]
    hosts = [urlsplit(url).hostname or "" for url in upstreams]
    return next((h for h in hosts if any(h == n or h.endswith(f".{n}") or not n for n in names)), "")


# --- places ---


def _refuse(output: str | None) -> None:
    """Raise ``CtxscopeError`` for a recording that is there, whose folder is not, or that would lie in an agent's."""
    if output is not None:
        path = Path(output).expanduser()
        is_there = os.path.lexists(path)
        if is_there or not path.parent.is_dir():
            found = "already there" if is_there else "no such folder"
            raise CtxscopeError(f"{path}: {found}; expected a new file in a folder that exists")
        from ctxscope.session.belongings import refuse  # noqa: PLC0415 - loads every agent

        refuse([path], Snapshot(0))


def _recording(output: str | None, agent: str) -> Path:
    """Where the recording goes."""
    if output is not None:
        return Path(output).expanduser().absolute()
    folder = resources.recordings()
    with suppress(OSError):  # the recorder tells what becomes of it
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    stamp = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime())
    return folder / f"{stamp}-{agent}-{secrets.token_hex(2)}.ctxrec"


def _overlays() -> Path:
    return resources.data_folder() / "overlays"


# --- what is said ---


def _say_start(path: Path, found: Launch, way: _Way, *, forward: bool) -> None:
    from ctxscope.capture.secrets import text  # noqa: PLC0415 - as above
    from ctxscope.cli.run_words import at_start  # noqa: PLC0415 - as above

    for line in at_start(path, found.title, found.tested, [text(w) for w in way.how], way.changes, forward=forward):
        narrate(line)
    if not os.access(path.parent, os.W_OK):
        narrate(f"NOTHING CAN BE STORED: {path.parent} cannot be written. The agent runs unrecorded")


def _finish(proxy: Proxy, recorder: Recorder, path: Path, found: Launch, way: _Way, told: Sequence[str]) -> None:
    """Store what is still on its way, and say what became of it all."""
    from ctxscope.capture.secrets import text  # noqa: PLC0415 - as above
    from ctxscope.cli.run_words import at_end  # noqa: PLC0415 - as above

    proxy.stop(DRAIN_SECONDS)
    stored = recorder.close()
    for line in at_end(path, stored, [text(w) for w in way.how], found.override.by_hand, proxy.tunnelled):
        narrate(line)
    for line in dict.fromkeys(told):
        narrate(line)
