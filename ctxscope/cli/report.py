"""Write a divergence report: what was served beside what the log rebuilds.

To stdout as Markdown unless told otherwise. Secrets and home folders are redacted by default.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from ctxscope import report
from ctxscope.cli import output, target
from ctxscope.cli.diagnostics import OK, narrate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare options and positionals."""
    parser.add_argument("path", metavar="PATH", help="a log, a recording, a folder of them, a session's id, or last")
    some = parser.add_mutually_exclusive_group()
    some.add_argument("--turn", type=int, metavar="N", help="only the calls of this turn")
    some.add_argument("--call", type=int, metavar="N", help="only this call")
    some.add_argument(
        "--next",
        action="store_true",
        help="what the agent would send next if it were started anew, and what its cache would lose",
    )
    parser.add_argument("--format", choices=report.names(), default="md", help="default: %(default)s")
    parser.add_argument("-o", "--output", metavar="FILE", help="write there instead of stdout")
    parser.add_argument(
        "--content",
        choices=("full", "redacted", "none"),
        default="redacted",
        help="texts of the session: as they are, without secrets and home folders, or no excerpts (default: %(default)s)",
    )
    target.add_choices(parser)


def run(args: argparse.Namespace) -> int:
    """Open, render, write."""
    from ctxscope.session.inspection import Inspection  # noqa: PLC0415 - the parser must answer without it

    what = target.resolve(args.path, args.session)
    for told in what.unread:
        narrate(told)
    inspection = Inspection.open(
        what.path,
        log=args.log,
        recording=args.recording,
        session=what.session,
        provider=args.provider,
        window=args.window,
        tokenizer=args.tokenizer,
    )
    try:
        if args.output is not None:
            from ctxscope.session.belongings import refuse  # noqa: PLC0415 - with the session

            refuse([Path(args.output)], inspection.snapshot, what.path)
        options = report.Options(
            call=args.call,
            turn=args.turn,
            content=args.content,
            home=str(target.own_home()),
            title=inspection.title,
            command=command(args),
        )
        fmt = report.load(args.format)
        if args.next:
            text = fmt.render_next(inspection.next_requests(), options)
        else:
            inspection.count()
            text = fmt.render(inspection.snapshot, inspection.view, options)
    finally:
        inspection.close()
    if args.output is None:
        output.to_stdout(text, fmt.spell)
        return OK
    output.to_file(text, Path(args.output))
    narrate(f"wrote {args.output}")
    return OK


def command(args: argparse.Namespace) -> str:
    """The command line that gives the same report again."""
    words = ["ctxscope", "report", args.path]
    for name in ("turn", "call", "session", "log", "recording", "provider", "window", "tokenizer"):
        value = getattr(args, name)
        words += [f"--{name}", str(value)] if value is not None else []
    words += ["--next"] if args.next else []
    words += ["--format", args.format]
    words += ["--content", args.content] if args.content != "redacted" else []
    return shlex.join(words)
