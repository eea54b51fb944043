"""Record what passes between programs and models: a recording proxy without an agent of its own.

Two of them with one pair id record both sides of a curator or gateway. stdout gives the base URLs, one a line.
"""

from __future__ import annotations

import argparse
import ipaddress
import os
import secrets
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ctxscope import resources
from ctxscope.cli import target
from ctxscope.cli.diagnostics import OK, narrate, writing
from ctxscope.model import CtxscopeError, Snapshot

if TYPE_CHECKING:
    from ctxscope.capture.events import Event
    from ctxscope.capture.proxy import Proxy
    from ctxscope.capture.recorder import Recorder

DRAIN_SECONDS = 2.0
"""For replies on their way when the proxy is ended."""
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_MOST_PORTS = 65_535
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - compared with, not listened at


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare options and positionals."""
    parser.add_argument(
        "--upstream",
        action="append",
        required=True,
        metavar="URL",
        help="a server to forward to, as often as there are any; NAME=URL keeps another host than its own in the path",
    )
    parser.add_argument("--listen", default="127.0.0.1:0", metavar="HOST:PORT", help="default: a free port on loopback")
    parser.add_argument("--allow-remote", action="store_true", help="let --listen name an address others can reach")
    parser.add_argument("-o", "--output", metavar="FILE", help="the recording; default: a new one in the data folder")
    parser.add_argument("--side", choices=("in", "out"), help="which side of a curator or gateway this is")
    parser.add_argument("--pair", metavar="ID", help="the same for both sides")
    parser.add_argument("--config-id", default="", metavar="TEXT", help="stored with the recording, to compare by")
    parser.add_argument("--use-env-proxy", action="store_true", help="reach upstreams by HTTP_PROXY and the like")


def run(args: argparse.Namespace) -> int:
    """Forward and record until a signal says to end."""
    from ctxscope.capture.proxy import Proxy  # noqa: PLC0415 - the parser must answer without it

    if bool(args.side) != bool(args.pair):
        raise CtxscopeError("--side and --pair: found one of them, expected both or neither")
    listen = _address(args.listen, args.allow_remote)
    path = _recording(args.output)
    recorders: list[Recorder] = []

    def store(event: Event) -> None:
        recorders[0](event)

    proxy = Proxy(store, listen=listen, environment_proxies=args.use_env_proxy, told=narrate)
    with _signals() as ended:
        proxy.start()
        try:
            urls = [_through(proxy, upstream) for upstream in args.upstream]
            changes = tuple(dict.fromkeys(map(_change, urls)))
            recorders.append(_recorder(path, args, proxy, urls, changes))
            _say(path, args.upstream, urls, changes, listen)
            ended.recv(1)
        finally:
            proxy.stop(DRAIN_SECONDS)
            for recorder in recorders:
                _say_end(path, recorder, urls)
    return OK


def _through(proxy: Proxy, upstream: str) -> str:
    """The base URL that leads to an upstream, without name and password; from here, where the proxy listens everywhere."""
    shown, equals, url = upstream.partition("=")
    shown, url = (shown, url) if equals and "://" not in shown else ("", upstream)
    if set(url) & set("?#"):
        from ctxscope.capture.proxy.upstreams import without_secrets  # noqa: PLC0415 - as above

        raise CtxscopeError(
            f"--upstream {without_secrets(url)}: found a query or a fragment, expected a base URL without them: "
            "an agent puts its own paths behind it"
        )
    path = urlsplit(proxy.through(url, shown=shown)).path
    host, colon, port = proxy.address.rpartition(":")
    return f"http://{_EVERYWHERE.get(host.strip('[]'), host)}{colon}{port}{path}"


def _change(url: str) -> str:
    """What a client that is given a base URL of the proxy sees otherwise than without it."""
    host, label = urlsplit(url).hostname, urlsplit(url).path.split("/")[2]
    if _is_loopback(label) or _is_loopback(label.rpartition(":")[0]):
        return f"sees a base URL on {host} and no provider's host: rules that go by the host take it for another server"
    return (
        f"sees a base URL on {host} with {label} in its path: its rules about the whole URL hold, "
        "rules about the host alone do not"
    )


def _recorder(
    path: Path, args: argparse.Namespace, proxy: Proxy, urls: Sequence[str], changes: tuple[str, ...]
) -> Recorder:
    from ctxscope.capture.events import Meta  # noqa: PLC0415 - the parser must answer without it
    from ctxscope.capture.recorder import Recorder  # noqa: PLC0415 - as above

    meta = Meta(
        time=time.time(),
        override=tuple(f"base URL {url}" for url in urls),
        changes=changes,
        upstreams=proxy.upstreams,
        home=str(target.own_home()),
        side=args.side or "",
        pair=args.pair or "",
        config_id=args.config_id,
    )
    return Recorder(path, meta, narrate)


@contextmanager
def _signals() -> Iterator[socket.socket]:
    """A socket that the first of the signals makes readable; the second ends the process as ever.

    A closed terminal (SIGHUP) ends it like the others, unless it was started to outlive that (``nohup``).
    Waiting for a lock instead sleeps through a signal that comes a moment too early (seen on CPython 3.11).
    """
    readable, written = socket.socketpair()
    written.setblocking(False)
    before = {number: signal.getsignal(number) for number in _SIGNALS if not _outlived(number)}

    def end(number: int, _: object) -> None:
        signal.signal(number, before[signal.Signals(number)])

    with readable, written:
        woken = signal.set_wakeup_fd(written.fileno())
        for number in before:
            signal.signal(number, end)
        try:
            yield readable
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(woken)


def _outlived(number: signal.Signals) -> bool:
    return number.name == "SIGHUP" and signal.getsignal(number) is signal.SIG_IGN


# --- places ---


def _address(text: str, remote: bool) -> tuple[str, int]:
    """Host and port; raises ``CtxscopeError`` for an address others can reach, unless that is wanted."""
    host, _, digits = text.rpartition(":")
    host = host.strip("[]")
    port = int(digits) if digits.isascii() and digits.isdecimal() else _MOST_PORTS + 1
    if not host or port > _MOST_PORTS:
        raise CtxscopeError(f"--listen {text}: expected a host and a port, such as 127.0.0.1:8080")
    if not remote and not _is_loopback(host):
        raise CtxscopeError(
            f"--listen {text}: an address that other machines can reach; expected one on loopback, or --allow-remote"
        )
    return host, port


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def _recording(output: str | None) -> Path:
    """Where the recording goes; raises ``CtxscopeError`` for a place that is meant for something else."""
    if output is None:
        folder = resources.recordings()
        with suppress(OSError):  # the recorder tells what becomes of it
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        stamp = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime())
        return folder / f"{stamp}-proxy-{secrets.token_hex(2)}.ctxrec"
    from ctxscope.capture import is_recording  # noqa: PLC0415 - the parser must answer without it

    path = Path(output).expanduser().absolute()
    if path.is_dir():
        raise CtxscopeError(f"{path}: a folder; expected a file to write the recording to")
    if not path.parent.is_dir():
        raise CtxscopeError(f"{path}: no such folder; expected a file in a folder that exists")
    if path.exists() and not (path.is_file() and is_recording(path)):
        raise CtxscopeError(f"{path}: a file that is no recording; expected a new file, or a recording to add to")
    from ctxscope.session.belongings import refuse  # noqa: PLC0415 - loads every agent

    # a recording may be added to, where it does not lie among an agent's own files
    refuse([path.parent, path.resolve().parent] if path.exists() else [path], Snapshot(0))
    return path


# --- what is said ---


def _say(
    path: Path, upstreams: Sequence[str], urls: Sequence[str], changes: Sequence[str], listen: tuple[str, int]
) -> None:
    narrate(f"recording to {path}")
    for words in changes:
        narrate(f"what that changes: a client {words}")
    if any("@" in upstream for upstream in upstreams):
        narrate(
            "name and password of an upstream are not shown: put them into the base URL, or into the agent's settings"
        )
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        narrate(f"NOTHING CAN BE STORED: {path} cannot be written. Traffic passes unrecorded")
    if not _is_loopback(listen[0]):
        narrate(
            f"WARNING: other machines can reach {listen[0]}; who has a URL below can use your upstreams, "
            "and what passes is not encrypted on the way here"
        )
        if listen[0] in _EVERYWHERE:
            narrate("on another machine, put this one's name or address in the place of the host in these URLs")
    narrate("base URLs to set in the agent, one for each upstream; Ctrl-C ends the recording:")
    for url in urls:
        narrate(f"  {url}")
    with writing() as out:
        for url in urls:
            print(url, file=out)
        out.flush()


def _say_end(path: Path, recorder: Recorder, urls: Sequence[str]) -> None:
    from ctxscope.cli.run_words import at_end  # noqa: PLC0415 - loads what only the end needs

    for line in at_end(path, recorder.close(), urls, "", {}):
        narrate(line)
