"""The export dialog: which calls, which formats, which file. It never overwrites a file without being told twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Checkbox, Input, Static

from ctxscope.session.belongings import refuse
from ctxscope.tui import errors
from ctxscope.tui.source import ReportFormat, Source
from ctxscope.tui.visible import visible

_FORMATS: tuple[ReportFormat, ...] = ("md", "json")
_NAMES: dict[ReportFormat, str] = {"md": "Markdown", "json": "JSON"}
_PREVIEW_LINES = 8
_PREVIEW_BYTES = 4_000


class Tick(Checkbox):
    """A check box that is empty when it is not ticked, so that it needs no colour to be read."""

    def __init__(self, label: str, *, value: bool, id: str) -> None:  # noqa: A002 - Textual's own name
        super().__init__(label, value, id=id)
        self.BUTTON_INNER = "X" if value else " "

    def watch_value(self) -> None:
        """Redraw the box."""
        self.BUTTON_INNER = "X" if self.value else " "
        super().watch_value()


class ExportScreen(ModalScreen[tuple[Path, ...] | None]):
    """Asks, previews, writes; its result is what was written."""

    BINDINGS: ClassVar = [
        Binding("escape", "cancel", "cancel", show=False),
        Binding("ctrl+s", "write", "write", show=False),
    ]

    class Previewed(Message):
        """The first lines of the report."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Written(Message):
        """Files were written."""

        def __init__(self, paths: tuple[Path, ...]) -> None:
            super().__init__()
            self.paths = paths

    class Refused(Message):
        """Nothing (more) was written, and why."""

        def __init__(self, reason: str, existing: frozenset[Path] = frozenset()) -> None:
            super().__init__()
            self.reason, self.existing = reason, existing

    def __init__(self, source: Source, n: int | None, folder: Path) -> None:
        super().__init__()
        self._source, self._n, self._folder = source, n, folder
        self._agreed: frozenset[Path] = frozenset()
        """Existing files the user has been told about: pressing enter again replaces these, and no others."""

    def compose(self) -> ComposeResult:
        """Scope, formats, file, preview."""
        with Vertical(id="dialog") as dialog:
            dialog.border_title = Content("Export divergence report")
            dialog.border_subtitle = Content("enter or ctrl+s write · tab next field · esc cancel")
            if self._n is not None:
                yield Tick(f"only call {self._n}, else all calls", value=True, id="one")
            with Horizontal(id="formats"):
                for fmt in _FORMATS:
                    yield Tick(_NAMES[fmt], value=True, id=fmt)
            yield Input(str(self._folder / self._stem()), id="file")
            yield Static("the ending follows from the format", id="told", markup=False)
            yield Static("", id="preview", markup=False)

    def on_mount(self) -> None:
        """Start in the file field: enter writes."""
        self.query_one("#file", Input).focus()
        self._preview(self.scope)

    @property
    def scope(self) -> int | None:
        """The call to report on; ``None`` for all."""
        return self._n if self._n is not None and self.query_one("#one", Tick).value else None

    @property
    def formats(self) -> tuple[ReportFormat, ...]:
        """The formats ticked."""
        return tuple(fmt for fmt in _FORMATS if self.query_one(f"#{fmt}", Tick).value)

    @on(Checkbox.Changed, "#one")
    def _scope_changed(self) -> None:
        self._preview(self.scope)

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.action_write()

    def action_cancel(self) -> None:
        """Close without writing."""
        self.dismiss(None)

    def action_write(self) -> None:
        """Write, or say why not."""
        text, formats = self.query_one("#file", Input).value.strip(), self.formats
        if not text or not formats:
            self._tell("name a file" if formats else "choose a format")
            return
        base = Path(text).expanduser()
        base = base.with_suffix("") if base.suffix in (".md", ".json") else base
        self._write(self.scope, [(base.with_name(f"{base.name}.{fmt}"), fmt) for fmt in formats], self._agreed)

    @work(thread=True, exclusive=True, group="preview")
    def _preview(self, n: int | None) -> None:
        try:
            text = self._source.report(n, "md")
        except Exception as error:  # noqa: BLE001 - a report that cannot be made is told, the app lives on
            text = errors.in_words(error)
        self.post_message(self.Previewed(text[:_PREVIEW_BYTES]))

    @work(thread=True, exclusive=True, group="write")
    def _write(self, n: int | None, files: Sequence[tuple[Path, ReportFormat]], agreed: frozenset[Path]) -> None:
        existing = frozenset(path for path, _ in files if path.exists()) - agreed
        if existing:
            names = ", ".join(path.name for path in sorted(existing))
            self.post_message(self.Refused(f"{names} exists: enter again replaces it", existing))
            return
        try:
            refuse([path for path, _ in files], self._source.snapshot)
            for path, fmt in files:
                # "x" closes the gap between looking and writing
                with path.open("w" if path in agreed else "x", encoding="utf-8", newline="\n") as file:
                    file.write(self._source.report(n, fmt))
        except Exception as error:  # noqa: BLE001 - likewise
            self.post_message(self.Refused(f"not written: {errors.in_words(error)}"))
            return
        self.post_message(self.Written(tuple(path for path, _ in files)))

    @on(Previewed)
    def _previewed(self, message: Previewed) -> None:
        lines = [visible(line) for line in message.text.split("\n")[:_PREVIEW_LINES]]
        self.query_one("#preview", Static).update(Content("\n".join(lines)))

    @on(Refused)
    def _refused(self, message: Refused) -> None:
        self._agreed |= message.existing
        self._tell(message.reason)

    @on(Written)
    def _done(self, message: Written) -> None:
        self.dismiss(message.paths)

    def _tell(self, words: str) -> None:
        self.query_one("#told", Static).update(Content(visible(words)))

    def _stem(self) -> str:
        words = [
            word
            for word in "".join(c if c.isalnum() and c.isascii() else " " for c in self._source.title).split()
            if word
        ]
        name = "-".join(words)[:40] or "session"
        return f"ctxscope-{name}" + (f"-{self._n}" if self._n is not None else "")
