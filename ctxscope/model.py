"""The words of ctxscope as frozen values.

Everything that crosses a room (``sources``, ``wire``, ``agents``, ``session``, ``analysis``, ``report``, ``tui``) is one
of these. The module imports nothing of ours. Unknown is ``None``, never 0; offsets and lengths count bytes; times are
seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

ApiName = Literal["anthropic-messages", "openai-chat", "openai-responses", "gemini"]
Provenance = Literal["logged", "derived", "learned", "echoed", "unknown"]
Scope = Literal["body", "messages", "semantic"]
RebuiltState = Literal["equal", "differs", "pending", "not_logged", "not_served", "not_supported"]
ReplyState = Literal["equal", "differs", "empty", "prefix", "missing", "not_recorded", "not_logged"]
CallKind = Literal["main", "side", "compaction", "subagent", "retry", "probe"]
StopState = Literal["complete", "truncated", "incomplete", "blocked", "error", "unknown"]
CacheState = Literal["cold", "warm", "break", "miss", "unknown"]
Confidence = Literal["confirmed", "consistent", "ambiguous", "not_measurable"]
Severity = Literal["error", "warning", "info"]
LimitSource = Literal["config", "log", "rule", "user"]
"""How a limit is known: the agent's settings say it · its log · its rule, applied to what those say · the user."""
BlockKind = Literal["text", "thinking", "tool_call", "tool_result", "image", "other"]
Fidelity = Literal["bytes", "parsed", "normalised"]
"""What a recording kept of a body: its bytes; its JSON value, spelt anew; or a value that a tool put into its own form."""


class CtxscopeError(Exception):
    """Bad input or usage, told in one sentence that names the file, what was found and what was expected."""


def quoted(text: str) -> str:
    """Text of a log or a provider inside words of ours (a notice): it can be told from them, and left out of a report."""
    return f"«{text.replace('«', '<<').replace('»', '>>')}»"


# --- what is read from disk ------------------------------------------------------------------------------------------


_DIGITS = 18
"""Of the longest number that is taken for one."""


class _Spot:
    """``Place.at``: of a line the number alone is kept, since a long log has very many."""

    def __get__(self, place: Place | None, owner: type[Place]) -> str:
        if place is None:
            raise AttributeError("at")  # it has no default
        return f"line {place.spot}" if isinstance(place.spot, int) else place.spot

    def __set__(self, place: Place, at: str | int) -> None:
        digits = at[5:] if isinstance(at, str) and at[:5] == "line " else ""
        plain = 0 < len(digits) <= _DIGITS and digits.isascii() and digits.isdigit() and digits[0] != "0"
        object.__setattr__(place, "spot", int(digits) if plain else at)


@dataclass(frozen=True)
class Place:
    """Where in a session's log something stands, as a person would look it up."""

    __slots__ = ("log", "spot")
    log: int
    """Index into ``SessionRef.paths``."""
    at: _Spot = _Spot()
    """``line 41`` or ``row 17``; a line may be given by its number."""

    spot: ClassVar[str | int]  # no field of its own: what ``at`` is kept as

    @property
    def number(self) -> int:
        """The number in it, which grows as a log does; 0 where it has none."""
        if isinstance(self.spot, int):
            return self.spot
        number = self.spot.rpartition(" ")[2]
        return int(number) if number.isdigit() else 0

    def __str__(self) -> str:
        return self.at


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """One file or table an agent's log consists of; what a reader must watch."""

    key: str
    """Name the agent gives it (``session``, ``messages``, ``tools``…); records carry it."""
    path: Path
    kind: Literal["jsonl", "sqlite", "whole", "lines"]
    """``jsonl``/``lines``: a record a line (``lines``: any text); ``sqlite``: a record a row; ``whole``: a record a file."""
    log: int = 0
    """Index into ``SessionRef.paths`` for the places of its records."""
    table: str = ""
    key_column: str = ""
    """Column whose value identifies a row (``id``, ``hash``)."""
    order_by: str = ""
    where: tuple[str, str] | None = None
    """``(column, value)`` that every row must have; the reader binds it."""
    mutable: tuple[str, ...] = ()
    """Columns the agent rewrites in rows already written; a change there is a new version of the row."""
    optional: bool = False
    kept: bool = True
    """Whether versions that the file no longer holds go into ctxscope's own data folder (DESIGN law 3).

    Never those of settings: keys and passwords stand in them (law 7). Of these only the newest version is known later on.
    """


@dataclass(frozen=True, slots=True)
class Record:
    """One version of one unit a source holds. ``value`` is the raw line, the whole file, or the row by column name."""

    source: str
    key: str
    """Unique within the source: line number, row key, or ``file``."""
    place: Place
    value: bytes | Mapping[str, Any] | None
    """``None``: the source no longer holds the unit."""
    version: int = 0
    """Counts the versions of this key, from 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One unit of a log as its agent means it."""

    kind: str
    """The agent's own kind (``user``, ``assistant``, ``tool``, ``system``, ``compaction``…) or ``unknown``."""
    place: Place
    key: str
    """Identity within the session: two entries with one key are versions of one thing."""
    data: Mapping[str, Any]
    """Parsed content; not to be changed by anyone."""
    time: float | None = None
    seq: int = 0
    """Number of the observation that brought it; set by the session, increasing."""
    source: str = "session"
    raw: bytes = b""
    """The line as logged, where the log is lines."""


@dataclass(frozen=True, slots=True)
class SessionRef:
    """A session found on disk, not yet read."""

    agent: str
    id: str
    paths: tuple[Path, ...]
    """The log's files; ``Place.log`` indexes them."""
    home: Path
    """The folder that stands for the user's home in the agent's own layout."""
    directory: str | None = None
    """Working directory the session ran in, as the log says."""
    updated: float | None = None
    size: int | None = None
    title: str | None = None
    parent: str | None = None
    """Id of the session this one continues (rotation, fork)."""
    started: float | None = None


# --- launching -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """A command that starts an agent, as the user would run it."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    home: Path
    """The user's home folder."""
    cwd: Path


@dataclass(frozen=True, slots=True)
class Overlay:
    """A folder of an agent seen with some files replaced; everything else, credentials and sessions too, is the original."""

    variable: str
    """Environment variable that names the folder to the agent."""
    original: Path
    files: Mapping[str, bytes]
    """What replaces a file, by its path in the folder."""


@dataclass(frozen=True, slots=True)
class Override:
    """How a command is started so that its calls pass a recording proxy, and what that changes."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables to set on top of the user's."""
    unset: tuple[str, ...] = ()
    """Variables to take away."""
    overlay: Overlay | None = None
    how: tuple[str, ...] = ()
    """What was set, in words a person could repeat (``ANTHROPIC_BASE_URL=http://…``)."""
    changes: tuple[str, ...] = ()
    """What the agent does otherwise under it, a sentence each; empty: nothing known."""
    by_hand: str = ""
    """What to set where this does not work."""


# --- traffic ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """One request and its reply as they crossed the wire, bodies decoded."""

    recording: int
    """Index of the recording."""
    n: int
    """Its number in the recording."""
    time: float
    method: str
    path: str
    headers: Mapping[str, str]
    """Lower-case names."""
    request: Callable[[], bytes]
    """Reads the body; a recording is far larger than memory, so bodies are loaded when looked at."""
    response: Callable[[], bytes]
    """Reads the reply's body; empty when there is none (yet)."""
    request_bytes: int
    response_bytes: int | None
    """``None``: no reply recorded (yet)."""
    status: int | None
    first_byte: float | None = None
    end: float | None = None
    upstream: str | None = None
    """Where it really went (``https://api.anthropic.com``), whatever address the agent was given."""
    fidelity: Fidelity = "bytes"
    places: tuple[tuple[str, str], ...] = ()
    """Where the agent's logs stood when the request arrived: a log's path and its last entry (``line 41``, ``row 17``)."""
    ended: str | None = None
    """How it ended where that was not the reply's own end (``client left``, ``upstream reset``), in words."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One piece of a request: the slice ``body[start:end]`` at a JSON path.

    Segments of a body do not overlap and are listed in body order; with the gaps between them they tile it.
    """

    path: str
    """JSON pointer (``/messages/3/content/0``); ``""`` for an opaque body."""
    start: int
    end: int
    kind: Literal["tool", "system", "message", "param", "opaque"]
    """``param`` is any top-level value outside the prompt (model, max_tokens…)."""
    role: str = ""
    """Of the message it belongs to (``user``, ``assistant``, ``tool``…); ``""`` outside messages."""
    block: BlockKind = "other"
    order: tuple[int, int] = (9, 0)
    """Rank in cache order; parameters rank last (9)."""
    breakpoint: bool = False
    """Carries a cache mark set by the client."""
    digest: bytes = b""
    """16-byte hash of its prompt form: role, value without breakpoints, spelling the provider cannot see removed."""
    prompt_bytes: int = 0
    """Length of that prompt form."""


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A request body cut into segments."""

    data: bytes
    api: ApiName | None
    segments: tuple[Segment, ...]
    model: str | None = None
    sha256: str = ""
    params: tuple[Segment, ...] | None = None
    """Its segments of kind ``param``, of which there are few among very many; ``None``: not looked for yet."""


@dataclass(frozen=True, slots=True)
class Block:
    """One content block in a form common to all APIs: of a message served, a reply delivered, or an answer stored."""

    kind: BlockKind
    text: str = ""
    """Text, thinking text, or the tool result's text; for a tool call its arguments as compact JSON with sorted keys."""
    id: str = ""
    """Tool-call id (call and result)."""
    name: str = ""
    envelope: str = ""
    """Opaque reasoning bytes (signature, encrypted_content, data, thoughtSignature)."""
    path: str = ""
    """JSON path in the body it was read from, where there is one."""
    item_id: str = ""
    """The provider's own id of the item it is or stands in (``rs_…``, ``msg_…``, ``fc_…``), beside a tool-call id."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a request, normalised for alignment; never used to judge bytes."""

    role: str
    blocks: tuple[Block, ...]
    path: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider reports them, in one normal form; ``None`` where it says nothing."""

    input: int | None = None
    """Uncached input only, whatever the provider's convention."""
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    """Includes reasoning."""
    reasoning: int | None = None

    @property
    def reported(self) -> int | None:
        """Prompt tokens in all: input + cache_read + cache_write; ``None`` when no part is known."""
        if self.input is None and self.cache_read is None and self.cache_write is None:
            return None
        return (self.input or 0) + (self.cache_read or 0) + (self.cache_write or 0)


@dataclass(frozen=True, slots=True)
class Stop:
    """Why the model stopped, in the provider's word and in ours."""

    reason: str | None = None
    state: StopState = "unknown"


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply read from its bytes, plain JSON or SSE."""

    id: str | None = None
    model: str | None = None
    blocks: tuple[Block, ...] = ()
    usage: Usage | None = None
    stop: Stop = Stop()
    error: str | None = None
    """The provider's error message, when the reply is one."""
    diagnostics: str | None = None
    """The provider's own cache diagnostics, in its words."""
    complete: bool = True
    """False when a stream ended without its terminal event."""
    doubts: tuple[str, ...] = ()
    """What it reports that cannot be, and how it was taken; in words."""
    edits: tuple[str, ...] = ()
    """What the provider says it took out of the request before the model read it, in its words."""
    served_by: str | None = None
    """The provider behind a router that gave it, where the router says so."""
    prompt_seconds: float | None = None
    """What an engine says it took to process the part of the prompt that it had not kept."""

    @property
    def ids(self) -> frozenset[str]:
        """Response id and tool-call ids: what may join it to a log."""
        calls = {b.id for b in self.blocks if b.kind == "tool_call" and b.id}
        return frozenset(calls | ({self.id} if self.id else set()))

    @property
    def text(self) -> str:
        """The visible text delivered."""
        return "".join(b.text for b in self.blocks if b.kind == "text")


# --- rebuilding ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Piece:
    """Some bytes of a rebuilt request and where they come from."""

    data: bytes
    provenance: Provenance = "derived"
    place: Place | None = None
    path: str = ""
    """JSON path of the learnable value, for learned and echoed pieces."""
    external: bool = False
    """The entry restores text from a store outside the log."""


@dataclass(frozen=True, slots=True, eq=False)
class Rebuilt:
    """The request a log implies: pieces that concatenate to the body."""

    pieces: tuple[Piece, ...]
    scope: Scope = "body"
    notices: tuple[str, ...] = ()

    @property
    def data(self) -> bytes:
        """The whole body."""
        return b"".join([p.data for p in self.pieces])


@dataclass(frozen=True, slots=True)
class Learnable:
    """A place in a request that the agent's log does not hold, with the reason."""

    path: str
    """JSON pointer of a top-level value (``/tools``), or deeper; ``*`` stands for any one key or index."""
    reason: str

    def covers(self, path: str) -> bool:
        """Whether a pointer names this place or one inside it."""
        mine, theirs = self.path.split("/"), path.split("/")
        return len(mine) <= len(theirs) and all(a in ("*", b) for a, b in zip(mine, theirs, strict=False))


@dataclass(frozen=True, slots=True)
class Value:
    """What stands at a learnable path in this call: its bytes and where they were learned. ``data`` None: no such key."""

    data: bytes | None
    provenance: Literal["learned", "echoed"]


@dataclass(frozen=True, slots=True)
class Learned:
    """All an agent knows of a call from beyond its log."""

    values: Mapping[str, Value] = field(default_factory=dict)
    """By learnable path."""
    keys: tuple[str, ...] = ()
    """Top-level keys of the served body in order, where the order itself is the client's and not the log's."""
    hypotheses: tuple[str, ...] = ()
    """Choices among forms the agent really has, in words; each held for a whole run of its process."""
    choice: Mapping[str, Any] = field(default_factory=dict)
    """The same for the agent's own use (``{"loaded_up_to": 12}``)."""


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A place in the log where a model call must have happened."""

    key: str
    """Stable identity: the answer's entry key, or ``after:<key>`` while no answer is logged."""
    place: Place
    """The answer, or the last entry of the context while none is logged."""
    context: Sequence[Entry]
    """The entries the request was made of, in order."""
    answer: Entry | None
    ids: frozenset[str] = frozenset()
    """Response and tool-call ids that can join it."""
    turn: int = 0
    """Number of the user input it belongs to, from 1."""
    order: tuple[float, int] = (0.0, 0)
    """Sort key in log order."""
    time: float | None = None
    """When the answer (or the newest context entry) was written."""
    kind: CallKind = "main"
    lineage: str = "main"
    branched_from: str | None = None
    """Key of the point this one left a branch for, when the log shows a branch: of this session, or of one it continues."""
    blocks: tuple[Block, ...] | None = None
    """The answer as stored; ``None`` when no answer is logged."""
    stop: Stop | None = None
    """Why the answer ended, as stored."""
    api: ApiName | None = None
    """The API the log itself says the answer came by; ``None`` where it does not say."""
    messages: tuple[Message, ...] | None = None
    """The context normalised, where the agent can give it cheaply; else the session asks for a rebuild."""
    what: str | None = None
    """The answer in a line, where the agent keeps it at hand; else it is made of ``blocks``."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The agent's own notes (api, model, run…)."""
    stored_usage: Usage | None = None
    provider_says: str | None = None
    """What the provider said became of its cache, as stored."""


NEXT_INPUT = "(your next input)"
"""Stands for what a user has not typed yet."""


@dataclass(frozen=True, slots=True, eq=False)
class Resume:
    """What an agent started anew makes of its log before it first asks a model."""

    records: tuple[Record, ...]
    """What it would add to its log until then, in order: at least the next input, whose text is ``NEXT_INPUT``."""
    choice: Mapping[str, Any] = field(default_factory=dict)
    """Goes before what ``Learned.choice`` says of the process that ran last."""
    values: Mapping[str, Value] = field(default_factory=dict)
    """Goes before ``Learned.values``."""
    changes: tuple[str, ...] = ()
    """What it sends otherwise than the process that ran last, a sentence each."""
    unknown: tuple[str, ...] = ()
    """What of the request cannot be said, a sentence each."""


@dataclass(frozen=True, slots=True)
class Named:
    """What a request itself says of where it belongs."""

    session: str | None = None
    """Id of its session: where that one is open, no other claims it."""
    ids: frozenset[str] = frozenset()
    """Ids that ``Point.ids`` of its session may hold too."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a call goes, as its agent's log tells it; ``None`` is not told."""

    api: ApiName | None = None
    provider: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """What an agent's own home says about limits; unknown values are ``None``."""

    agent_version: str | None = None
    window: int | None = None
    threshold: int | None = None
    """Tokens at which the agent compacts."""
    protect_head: int | None = None
    protect_tail: int | None = None
    window_by: LimitSource | None = None
    threshold_by: LimitSource | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    """Everything else the agent's module wants to keep."""


@dataclass(frozen=True, slots=True)
class Window:
    """How many tokens a model takes in at once, and from how many on its agent compacts."""

    size: int | None = None
    size_by: LimitSource | None = None
    threshold: int | None = None
    threshold_by: LimitSource | None = None

    @property
    def is_out_of_reach(self) -> bool:
        """The threshold lies above the window: no prompt that the model takes reaches it."""
        return self.size is not None and self.threshold is not None and self.threshold > self.size


NO_WINDOW = Window()


@dataclass(frozen=True, slots=True)
class Marker:
    """An event that rewrites or restores history."""

    kind: str
    """compaction, micro, defrag, prune, shake, strip, steer, resume, restore, rewind, model_switch or tools_changed."""
    point: str | None
    """Key of the first point after it; ``None`` at the end of the log."""
    logged: bool
    where: str
    """What it did, in words."""
    place: Place | None = None
    before_tokens: int | None = None
    after_tokens: int | None = None
    dropped: tuple[Place, ...] = ()
    call: int | None = None
    """Number of the first call after it; set by the session."""
    session: str | None = None


@dataclass(frozen=True, slots=True)
class TailCut:
    """Where a rule of an agent's divides what is summarised from the tail that is kept."""

    version: str
    """Of the agent whose rule it is."""
    at: int
    """Index of the first message of the tail among ``Compacted.messages``."""
    envelope: bool = True
    """False: as if the messages held no opaque reasoning bytes."""
    own: bool = False
    """The rule of the version that wrote the log."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """What an agent's log and rules tell of one event that shortened the history; ``None`` is not told."""

    marker: Marker
    messages: tuple[Place, ...] = ()
    """The history it found, in order; empty where the log does not tell it."""
    head: int | None = None
    """So many of them it kept at the start."""
    cut: int | None = None
    """Index of the first of them that it kept at the end."""
    rules: tuple[TailCut, ...] = ()
    """Where the agent's rules put ``cut``, by version and with or without the envelope."""
    budget: int | None = None
    """Tokens that the rule grants the tail."""
    reckoned_before: int | None = None
    """Of what ``marker.before_tokens`` is told of, the agent's estimator reproduced."""
    reckoned_after: int | None = None
    unseen: int | None = None
    """Tokens, by that estimator, of the messages that came after the last answer before it: no call was billed for them."""
    automatic: bool | None = None
    seconds: float | None = None
    """How long it took, as the agent itself wrote down."""
    usage: Usage | None = None
    """What its own request cost, as stored."""
    setting: str = ""
    """The settings it ran under, in words."""


# --- judgements ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Difference:
    """The first byte where two things part."""

    raw_offset: int
    """In the served body."""
    other_offset: int
    """In the other one (equal to ``raw_offset`` unless a search by segment found it)."""
    prefix_offset: int | None
    """In cache order, breakpoints left out."""
    path: str
    cls: str
    """content, missing, extra, order, key_order, number_spelling, null_vs_missing, escape, whitespace, line_ending,
    unicode_form, id_regenerated, form, breakpoint or opaque."""
    cause: str
    """In words."""
    served: str
    """Excerpt; text of a log, hence hostile."""
    rebuilt: str
    effective: bool = False
    """Offsets and path are those of the effective request: it lies in what the request continues."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Served bytes by the provenance of the rebuilt byte that equals them."""

    logged: int = 0
    derived: int = 0
    learned: int = 0
    echoed: int = 0
    unknown: int = 0
    external: int = 0
    """Of ``logged``: text that an entry restores from a store outside the log."""


@dataclass(frozen=True, slots=True)
class RebuiltVerdict:
    """Served against rebuilt."""

    state: RebuiltState
    scope: Scope | None = None
    first_difference: Difference | None = None
    coverage: Coverage | None = None


@dataclass(frozen=True, slots=True)
class ReplyVerdict:
    """Delivered against stored, and stored against what the next request echoes."""

    state: ReplyState
    first_difference: Difference | None = None
    echo: Literal["equal", "differs"] | None = None


@dataclass(frozen=True, slots=True)
class CacheVerdict:
    """What became of the parent's prefix."""

    verdict: CacheState = "unknown"
    cause: str | None = None
    candidates: tuple[str, ...] = ()
    confidence: Confidence = "not_measurable"
    path: str | None = None
    prefix_offset: int | None = None
    expected_read: tuple[int, int] | None = None
    reported_read: int | None = None
    lost_tokens: int | None = None
    lost_estimated: bool = False
    """``lost_tokens`` is a share of the parent's prompt by bytes, or a lower bound; else it is what was reported."""
    extra: float | None = None
    """What the loss costs more than reading would have, in input tokens: lost x (write - read), by the provider's rules."""
    money: float | None = None
    """The same in ``currency``, where the user's rules give a price for the model."""
    currency: str = ""
    seconds: float | None = None
    """What a local engine needed to process the lost tokens again, a share of the time it took for all that was new."""
    seconds_from: Literal["", "timings", "first_byte"] = ""
    """By the engine's own timings, or by the time to the first byte of its reply, which holds more than that."""
    provider_says: str | None = None
    why: str = ""
    """In words, for a person."""
    facts: tuple[str, ...] = ()
    """Benign differences worth showing (a breakpoint moved, spelling changed)."""


@dataclass(frozen=True, slots=True)
class TokenParts:
    """Visible tokens of a request by what they are; each token stands in one part."""

    system: int = 0
    tools: int = 0
    text: int = 0
    tool_calls: int = 0
    tool_results: int = 0
    thinking: int = 0
    envelope: int = 0
    sidecar: int = 0
    """Text sent from a sidecar, instead of what the log shows as the message."""
    images: int | None = 0
    """``None`` when the size of an image, or its provider's formula, is not known."""
    documents: int | None = 0
    """Files that the provider renders itself (PDFs, sounds, whatever is given by name); ``None`` when one is there whose
    pages, or its provider's formula, are not known. A document given as text is text."""
    overhead: int | None = None
    """What the provider says it adds, at least; ``None`` where it says nothing for this request."""


Ignored = Literal["role", "merged", "empty", "number", "list", "object", "bytes"]


@dataclass(frozen=True, slots=True, eq=False)
class Sidecar:
    """What an agent stored beside a message to be sent instead of it. One version of one entry gives the same object."""

    place: Place
    role: str
    clean: Any
    """What the log shows as the message, as it would go out: a text, or a list of parts."""
    stored: Any
    """What stands beside it: a text, as it goes out, or whatever else the log holds there."""
    ignored: Ignored | None = None
    """Why the agent's rule lets the clean content go out all the same: the role of the message, that it became part of
    another one, or what was stored is no text, or an empty one. ``None``: the sidecar substitutes."""


@dataclass(frozen=True, slots=True)
class ContentSize:
    """What a content comes to, counted without the request it goes out in."""

    characters: int
    """Of its text."""
    bytes: int
    """The same in UTF-8."""
    tokens: int
    """The same by the model's vocabulary, or another's (``Substitution.estimated``)."""
    images: int | None = 0
    """Tokens of its images by the provider's formula, never of their base64; ``None`` with an image or a file of which
    that is not known."""


@dataclass(frozen=True, slots=True)
class Substitution:
    """A sidecar judged beside the content it stands for."""

    place: Place
    role: str
    relation: Literal["equal", "shorter", "longer", "as_long"]
    """Of the sidecar to the clean content, by characters; ``as_long``: another text of the same length."""
    ignored: Ignored | None
    """See ``Sidecar``; the clean content counts then."""
    clean: ContentSize
    sidecar: ContentSize
    differs_at: int | None
    """Characters both begin with; ``None`` where their texts are equal."""
    estimated: bool
    """As ``TokenLedger.estimated``, for the tokens of both."""
    session: str | None = None
    call: int | None = None
    """Number of the first call whose context holds it."""

    @property
    def more(self) -> int:
        """Tokens of its text more than the clean content's."""
        return self.sidecar.tokens - self.clean.tokens

    @property
    def why_ignored(self) -> str:
        """Why it is not sent, in words; empty for one that is."""
        return _IGNORED[self.ignored] if self.ignored is not None else ""


_IGNORED: Mapping[Ignored, str] = {
    "role": "its role sends none",
    "merged": "merged into another message",
    "empty": "an empty text",
    "number": "a number",
    "list": "a list",
    "object": "an object",
    "bytes": "bytes",
}


@dataclass(frozen=True, slots=True)
class SidecarSum:
    """The sidecars in the context of one call, in sum."""

    equal: int = 0
    shorter: int = 0
    longer: int = 0
    as_long: int = 0
    ignored: int = 0
    """Not among the others."""
    clean_tokens: int = 0
    """Of the texts that those which substitute stand for."""
    sent_tokens: int = 0
    """Of what they are."""


@dataclass(frozen=True, slots=True)
class SidecarView:
    """A sidecar of a call as far as a screen shows it: read when looked at."""

    judged: Substitution
    clean: str
    """From shortly before where both part, or from the start; text of a log."""
    sidecar: str


_REQUESTED = ("system", "tools", "text", "tool_calls", "tool_results", "thinking", "sidecar", "images")
_RECKONED = ("bookkeeping", "head", "reported", "envelope")
CHARGED = (*_REQUESTED, *_RECKONED)
"""What an agent's own estimate may charge for: the names of ``TokenParts``, ``bookkeeping`` (keys, roles, ids, what is
added for each message or block), ``head`` (system and tools, noted by the agent in one sum) and ``reported`` (taken over
from the usage of an earlier answer). The envelope stands last: what is rounded up is charged in this order, so that
its length moves nothing else."""
COLUMNS = (*_REQUESTED, "documents", "overhead", *_RECKONED)
"""Of a ledger, in order: what a request has, then what only an estimator charges for, the envelope last."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one version of an agent's own estimator makes of a context."""

    estimator: str
    """Its name with the version: ``Hermes 0.20``."""
    tokens: int
    charged: Mapping[str, int]
    """Tokens by ``CHARGED``, every name, in sum exactly ``tokens``. Kinds are the estimator's view: a sidecar counted beside
    the content it replaces stands under ``sidecar``."""
    verified: bool = False
    """Figures that the agent itself wrote down hold, to the token, for all that is charged here; else it is told as "from
    the formula, not verified"."""


@dataclass(frozen=True, slots=True)
class TokenLedger:
    """Token counts of one request, each known in its own way; ``None`` is unknown."""

    reported: int | None = None
    visible: int | None = None
    rebuilt: int | None = None
    naive: int | None = None
    agent: int | None = None
    """By the estimator of the version that wrote the log: the first of ``estimates``."""
    parts: TokenParts | None = None
    estimated: bool = True
    """True when the model has another tokenizer than the one counted with, or no vocabulary was found."""
    estimates: tuple[Estimate, ...] = ()
    """The agent's own, and behind it what its other known versions make of the same history."""
    gap: tuple[str, ...] = ()
    """Why these counts part, a sentence each in words of ours, the largest reason first."""
    factor: float | None = None
    """Reported ÷ visible of the model, the median over the session's calls of it; an estimate."""
    calibrated: int | None = None
    """``visible`` x ``factor``: about what a provider would report for the text, whatever this call reported."""
    sidecars: SidecarSum | None = None
    """``None`` where the context holds no sidecar, or was not counted yet."""
    envelope_bytes: int | None = None
    """Of the opaque strings that ``parts.envelope`` is the tokens of, in UTF-8, JSON escapes read."""
    overhead_for: str = ""
    """What ``parts.overhead`` is added for, in words of ours; empty where it is not known."""
    overhead_from: str = ""
    """Where that is said: source and date of each figure."""


@dataclass(frozen=True, slots=True)
class EntryRef:
    """The log side of a call."""

    log: int
    place: str


@dataclass(frozen=True, slots=True)
class ExchangeRef:
    """The served side of a call."""

    recording: int
    n: int
    fidelity: Fidelity = "bytes"
    """What the recording kept of its bodies; of anything but bytes only values are compared."""
    ended: str | None = None
    """How it ended where that was not the reply's own end, in words."""

    @property
    def words(self) -> tuple[str, ...]:
        """What is unusual about it, in words; mostly nothing."""
        kept = {"bytes": (), "parsed": ("recorded as JSON values, not as bytes",)}
        told = kept.get(self.fidelity, ("recorded in a form of the recording tool's own",))
        return (*told, *((f"the exchange ended otherwise: {self.ended}",) if self.ended else ()))


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One model call, judged: an exchange joined to its place in a log; either side may be absent."""

    n: int
    """Number by arrival, from 1."""
    session: str | None
    turn: int | None
    lineage: str
    parent: int | None
    kind: CallKind
    exchange: ExchangeRef | None
    entry: EntryRef | None
    joined_by: Literal["id", "place", "answer", "order"] | None
    api: ApiName | None
    provider: str | None
    model: str | None
    time: float | None
    request_bytes: int | None
    request_sha256: str | None
    rebuilt: RebuiltVerdict
    reply: ReplyVerdict
    cache: CacheVerdict
    tokens: TokenLedger
    usage: Usage | None
    stop: Stop | None
    requested_max: int | None
    at_cap: bool | None
    what: str
    """One line saying what the call answered or did; text of a log, hence hostile."""
    point: str | None = None
    """Key of its point."""
    markers: tuple[str, ...] = ()
    """Kinds of the markers right before it."""
    status: int | None = None
    remarks: tuple[str, ...] = ()
    """What the agent's own rules say of it, a sentence each."""
    window: Window = NO_WINDOW

    @property
    def filled(self) -> int | None:
        """Prompt tokens: as reported, else as counted of the text the model saw, else of the request the log implies."""
        counts = self.tokens
        return next((n for n in (counts.reported, counts.visible, counts.rebuilt) if n is not None), None)

    @property
    def occupancy(self) -> float | None:
        """``filled`` as a share of the window."""
        return self.filled / self.window.size if self.filled is not None and self.window.size else None


@dataclass(frozen=True, slots=True)
class Finding:
    """A coded, located statement, like a linter's."""

    code: str
    severity: Severity
    calls: tuple[int, ...]
    path: str | None
    message: str
    evidence: str


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session as the report names it."""

    id: str
    agent: str
    agent_version: str | None
    directory: str | None
    log: tuple[str, ...]
    recordings: tuple[str, ...]
    scope: Literal["body", "messages", "semantic", "none"]
    hypotheses: tuple[str, ...]
    config: Config
    title: str | None = None
    borrowed: tuple[Learnable, ...] = ()
    """What its calls had to borrow from the wire, since the agent's log never holds it."""


@dataclass(frozen=True, slots=True)
class CacheCost:
    """What one session lost to one cause."""

    session: str | None
    verdict: CacheState
    """``break`` or ``miss``."""
    cause: str | None
    calls: tuple[int, ...]
    """Numbers, in order."""
    lost_tokens: int | None
    """``None`` when the loss of one of them is not known."""
    estimated: bool
    extra: float | None
    """In input tokens; ``None`` when a price is not known."""
    money: float | None
    currency: str
    remedy: str = ""
    """What to do about it, a clause in words of ours."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """What one event that shortened the history did, judged; ``None`` is unknown."""

    told: Compacted
    """Its marker names the first call after it."""
    before: int | None = None
    """Number of the last call before it, of the same lineage."""
    tokens_before: int | None = None
    """Prompt tokens of that call, as reported, else counted."""
    tokens_after: int | None = None
    """The same of the first call after it."""
    counted: bool = False
    """One of the two is not reported."""
    requests: tuple[int, ...] = ()
    """Numbers of the calls that made the summary."""
    usage: Usage | None = None
    """What those cost."""
    seconds: float | None = None
    """It held the user so long."""
    seconds_by: Literal["", "agent", "exchange"] = ""
    """As the agent wrote down, or from its requests to their replies."""
    broke: bool | None = None
    """Whether it broke the cache at the first call after it; ``None`` too where something else did."""
    rebilled: int | None = None
    """Tokens billed again for the break at the first call after it: they stood in the prompt before."""
    rebilled_estimated: bool = False
    rebilled_at_most: bool = False
    """``rebilled``, and with it ``cost`` and ``break_even``, is an upper bound: some of it may never have been billed."""
    cost: float | None = None
    """Its requests and the break, in input tokens."""
    saving: float | None = None
    """What each later call costs less, in input tokens."""
    break_even: int | None = None
    """After so many calls it has paid for itself; ``None``: unknown, or never (``saving`` is not positive)."""
    phantom: bool = False
    """It was due by the agent's count alone: what the model really was given lay below the threshold."""
    words: tuple[str, ...] = ()
    """What it did, a sentence each, in words of ours."""

    @property
    def is_bare(self) -> bool:
        """Whether no figure of it is known."""
        figures = (self.tokens_before, self.tokens_after, self.usage, self.seconds, self.rebilled, self.break_even)
        lists = (self.told.messages, self.told.marker.dropped)
        return all(figure is None for figure in figures) and self.saving is None and not any(lists)

    @property
    def billed_again(self) -> str:
        """``rebilled`` in words."""
        return _bounded(self.rebilled, estimated=self.rebilled_estimated, at_most=self.rebilled_at_most)

    @property
    def pays_after(self) -> str:
        """After how many calls it has paid for itself, in words."""
        if self.saving is not None and self.saving <= 0:
            return "never"
        return _bounded(self.break_even, estimated=False, at_most=self.rebilled_at_most)

    @property
    def lost(self) -> tuple[Place, ...]:
        """Messages summarised away that the agent's rule would have kept had they held no envelope."""
        told = self.told
        ruled, clean = (
            next((r.at for r in told.rules if r.own and r.envelope == held), None) for held in (True, False)
        )
        if ruled is None or clean is None or ruled != told.cut:
            return ()  # a rule that does not tell what happened does not tell what would have
        return told.messages[clean:ruled]


@dataclass(frozen=True, slots=True)
class BreakRate:
    """How often events of one kind broke the cache of one session, under one setting."""

    session: str | None
    kind: str
    setting: str
    events: int
    breaks: int
    calls: int
    """Of the same lineage since the event before each, or the start."""
    rebilled: int | None
    """``None`` when that of one break is not known."""
    estimated: bool = False
    """``rebilled`` is in part."""
    at_most: bool = False
    """``rebilled`` is an upper bound."""
    unknown: int = 0
    """Of so many of the events it is not known whether they broke it: no call came after, or another cause broke it."""

    @property
    def words(self) -> str:
        """How many broke it in how many calls, and what was billed again."""
        known = self.events - self.unknown
        broke = [f"{self.breaks:,} of {known:,} broke the cache"] if known else []
        broke += [f"of {self.unknown:,} it is not known whether they broke the cache"] if self.unknown else []
        words = f"{', '.join(broke)}, in {self.calls:,} call{'' if self.calls == 1 else 's'}"
        again = _bounded(self.rebilled, estimated=self.estimated, at_most=self.at_most)
        return words if self.rebilled is None else f"{words}; {again} tokens billed again"


def _bounded(value: int | None, *, estimated: bool, at_most: bool) -> str:
    if value is None:
        return "–"
    return f"{'at most ' if at_most else ''}{'≈' if estimated and value else ''}{value:,}"


@dataclass(frozen=True, slots=True)
class CacheUse:
    """How one session used its cache, beside what the same calls would have read had each kept its parent's prompt."""

    session: str | None
    calls: int
    """With reads reported."""
    sent: int
    """Prompt tokens of all of them."""
    read: int
    new: int
    """Prompt tokens that were not read."""
    read_bound: int
    new_bound: int
    """Of the session's own calls, append-only."""
    unbroken: tuple[int, int]
    """Tokens read and sent by calls inside unbroken stretches."""
    after_seam: tuple[int, int]
    """Tokens read and sent by calls right after a compaction, a resume or a cut reply."""
    seams: int

    @property
    def reuse(self) -> float | None:
        """Tokens sent ÷ tokens new."""
        return self.sent / self.new if self.new else None

    @property
    def reuse_bound(self) -> float | None:
        """The same had nothing been lost."""
        return self.sent / self.new_bound if self.new_bound else None


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all calls of a snapshot."""

    calls: int = 0
    joined: int = 0
    equal: int = 0
    breaks: int = 0
    misses: int = 0
    lost_tokens: int | None = None
    coverage: float | None = None
    reuse: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """All that is known at one moment; the only value that leaves the session's worker thread.

    Compared by ``revision``: a field-wise comparison would cost the length of the session.
    """

    revision: int
    sessions: tuple[SessionInfo, ...] = ()
    recordings: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    markers: tuple[Marker, ...] = ()
    findings: tuple[Finding, ...] = ()
    notices: tuple[str, ...] = ()
    """In words of ours; what they quote of a log or a provider stands in ``quoted``."""
    totals: Totals = Totals()
    costs: tuple[CacheCost, ...] = ()
    """What was lost to which cause, the dearest first."""
    uses: tuple[CacheUse, ...] = ()
    """By session, in the order of their first calls; calls that no session claims last."""
    compactions: tuple[Compaction, ...] = ()
    """In the order of ``markers``."""
    break_rates: tuple[BreakRate, ...] = ()
    sidecars: tuple[Substitution, ...] = ()
    """Of the calls that are counted, each at the first one whose context holds it."""
    partial: bool = False
    """A writer is in the middle of a line or an exchange."""


@dataclass(frozen=True, slots=True, eq=False)
class CallView:
    """Everything about one call that is too dear to keep in a snapshot: its bytes, on every side that exists."""

    call: Call
    served: Body | None
    rebuilt: Body | None
    pieces: tuple[Piece, ...]
    """Of the rebuilt body."""
    previous: Body | None
    """The parent's effective served body (or rebuilt one, where nothing was served)."""
    previous_n: int | None
    effective: Body | None
    """What the model was given, when the body carries only what is new; else the served body."""
    delivered: bytes | None
    """The reply's raw bytes."""
    delivered_blocks: tuple[Block, ...] | None
    stored_blocks: tuple[Block, ...] | None
    echoed_blocks: tuple[Block, ...] | None
    echoed_n: int | None
    unchanged_since: Mapping[str, int] = field(default_factory=dict)
    """Segment path -> first call that already held this segment unchanged."""
    segment_tokens: Mapping[str, int] = field(default_factory=dict)
    """Segment path -> visible tokens."""
    segment_media: Mapping[str, int | None] = field(default_factory=dict)
    """Segment path -> tokens of the images in it by formula, where there are any; ``None`` where that is not known, and
    with a document."""
    segment_envelopes: Mapping[str, int] = field(default_factory=dict)
    """Segment path -> bytes of the opaque reasoning in it, where there is any."""
    calibrated_tokens: Mapping[str, int] = field(default_factory=dict)
    """Segment path -> tokens, images included, scaled so that all add up to what was reported; an estimate. Empty where
    nothing was reported, an image or a file is unknown, or the total must hold something else."""
    provenance: Mapping[str, Provenance | Literal["mixed"]] = field(default_factory=dict)
    """Served segment path -> provenance of its bytes (``unknown`` where they differ from the rebuilt ones)."""


@dataclass(frozen=True, slots=True)
class Logged:
    """A message of a log, as far as a list of messages shows it: read when looked at."""

    place: Place
    role: str = ""
    """In the log's own word, else the agent's kind of the entry; ``""`` where the log does not hold it any more."""
    text: str = ""
    """How it begins; text of a log, hence hostile."""


@dataclass(frozen=True, slots=True, eq=False)
class NextRequest:
    """The request an agent would send for its next input if it were started anew: built when asked for."""

    session: str
    agent: str
    title: str
    """What people call the agent."""
    body: Body | None = None
    """With ``NEXT_INPUT`` where the input will stand; ``None``: it cannot be said, see ``why``."""
    pieces: tuple[Piece, ...] = ()
    scope: Scope = "body"
    previous: Body | None = None
    """What the model was given last, as served; as rebuilt where it was not recorded."""
    previous_n: int | None = None
    """Number of that call."""
    previous_served: bool = False
    cache: CacheVerdict = CacheVerdict()
    """As if it were sent at once to where the last call went."""
    ttl: float | None = None
    """Seconds from the start of the last request after which its provider keeps nothing of it, where it says so."""
    difference: Difference | None = None
    """Where its prompt parts from the last one's (``served``); ``None`` where it goes on from all that was kept."""
    changes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """For both see ``Resume``."""
    hypotheses: tuple[str, ...] = ()
    why: str = ""
    """Why nothing can be said."""
