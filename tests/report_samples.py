"""Hand-made snapshots for the tests of reports; every text is invented."""

from __future__ import annotations

from ctxscope.model import (
    CHARGED,
    Block,
    Body,
    BreakRate,
    CacheCost,
    CacheUse,
    CacheVerdict,
    Call,
    CallView,
    Compacted,
    Compaction,
    Config,
    ContentSize,
    Coverage,
    Difference,
    EntryRef,
    Estimate,
    ExchangeRef,
    Finding,
    Marker,
    Place,
    RebuiltVerdict,
    ReplyVerdict,
    SessionInfo,
    SidecarSum,
    Snapshot,
    Stop,
    Substitution,
    TailCut,
    TokenLedger,
    TokenParts,
    Totals,
    Usage,
)

SERVED = b'{"messages":[{"role":"user","content":"count the plums"}]}'
REBUILT = b'{"messages":[{"role":"user","content":"count the pears"}]}'
AT = SERVED.index(b"lums")
ESTIMATES = tuple(
    Estimate(name, sum(charged.values()), dict.fromkeys(CHARGED, 0) | charged, verified)
    for name, charged, verified in (
        ("Hermes 0.20", {"system": 100, "text": 205}, True),
        ("Hermes 0.19", {"system": 100, "text": 205, "tool_calls": 1200, "envelope": 4000}, False),
    )
)


def difference(
    served: str = "count the plums", rebuilt: str = "count the pears", cause: str = "the text differs", at: int = AT
) -> Difference:
    return Difference(at, at, 40, "/messages/0/content", "content", cause, served, rebuilt)


def unknown_call(n: int = 1) -> Call:
    """A call of which nothing is known but that it happened."""
    return Call(
        n=n,
        session=None,
        turn=None,
        lineage="main",
        parent=None,
        kind="main",
        exchange=None,
        entry=None,
        joined_by=None,
        api=None,
        provider=None,
        model=None,
        time=None,
        request_bytes=None,
        request_sha256=None,
        rebuilt=RebuiltVerdict("not_supported"),
        reply=ReplyVerdict("not_recorded"),
        cache=CacheVerdict(),
        tokens=TokenLedger(),
        usage=None,
        stop=None,
        requested_max=None,
        at_cap=None,
        what="",
    )


def known_call(n: int = 2, *, first: Difference | None = None, what: str = "counted plums", turn: int = 1) -> Call:
    """A call of which everything is known, differing on every side."""
    return Call(
        n=n,
        session="s-1",
        turn=turn,
        lineage="main",
        parent=1,
        kind="main",
        exchange=ExchangeRef(0, n),
        entry=EntryRef(0, "line 4"),
        joined_by="id",
        api="anthropic-messages",
        provider="orchard",
        model="plum-1",
        time=1_700_000_000.25,
        request_bytes=len(SERVED),
        request_sha256="ab" * 32,
        rebuilt=RebuiltVerdict("differs", "body", first or difference(), Coverage(30, 20, 5, 0, 4)),
        reply=ReplyVerdict("prefix", difference("three plums", "three"), "differs"),
        cache=CacheVerdict(
            verdict="break",
            cause="compaction",
            confidence="consistent",
            path="/messages/0",
            prefix_offset=12,
            expected_read=(100, 200),
            reported_read=0,
            lost_tokens=150,
            lost_estimated=True,
            provider_says="prefix changed",
            why="a summary replaced 4 messages",
            facts=("a breakpoint moved",),
        ),
        tokens=TokenLedger(
            *(300, 290, 291, 310, 305, TokenParts(system=100, text=190, envelope=40)),
            estimated=False,
            estimates=ESTIMATES,
            gap=(
                "Hermes 0.20 estimates 305, 1.02 × reported (300): it over-counts by 5",
                "text at 205 against 190: +15",
            ),
            sidecars=SidecarSum(equal=1, longer=1, as_long=1, ignored=1, clean_tokens=12, sent_tokens=16),
        ),
        usage=Usage(100, 0, 200, 12, None),
        stop=Stop("max_tokens", "truncated"),
        requested_max=12,
        at_cap=True,
        what=what,
        markers=("compaction",),
        status=200,
    )


COMPACTION = Compaction(
    Compacted(
        Marker("compaction", "k", False, "4 messages became a summary", Place(0, "line 3"), 900, 300, (), 2, "s-1"),
        messages=tuple(Place(0, f"line {n}") for n in range(1, 7)),
        head=1,
        cut=4,
        rules=(TailCut("0.20", 4, own=True), TailCut("0.20", 3, envelope=False, own=True)),
        budget=200,
        reckoned_before=900,
        reckoned_after=310,
        setting="threshold 0.5",
    ),
    before=1,
    tokens_before=950,
    tokens_after=300,
    usage=Usage(500, 0, 0, 40),
    seconds=2.5,
    seconds_by="agent",
    rebilled=40,
    rebilled_estimated=True,
    cost=550.0,
    saving=65.0,
    break_even=9,
    words=("It kept little.",),
)


SIDECARS = (
    *(
        Substitution(Place(0, f"row {n}"), "user", relation, None, ContentSize(9, 9, 4), longer, at, True, "s-1", 2)
        for n, relation, longer, at in (
            (4, "equal", ContentSize(9, 9, 4), None),
            (5, "longer", ContentSize(21, 22, 9), 9),
            (6, "as_long", ContentSize(9, 9, 3), 0),
        )
    ),
    Substitution(
        *(Place(0, "row 7"), "tool", "shorter", "role", ContentSize(30, 30, 8, None), ContentSize(4, 4, 1), 0, True),
        session="s-1",
        call=2,
    ),
)


def snapshot(*calls: Call, **changes: object) -> Snapshot:
    values: dict[str, object] = {
        "revision": 1,
        "sessions": (
            SessionInfo(
                "s-1",
                "hermes",
                "0.20",
                "/srv/orchard",
                ("/srv/orchard/state.db",),
                ("/srv/orchard/wire",),
                "body",
                ("loaded up to row 3",),
                Config(window=1000),
            ),
        ),
        "recordings": ("/srv/orchard/wire",),
        "costs": (CacheCost("s-1", "break", "compaction", (2,), 40, True, 46.0, 0.5, "USD", "compact seldom"),),
        "uses": (CacheUse("s-1", 2, 300, 0, 300, 90, 210, (0, 0), (0, 200), 1),),
        "calls": calls or (unknown_call(), known_call()),
        "markers": (
            Marker(
                "compaction",
                "k",
                False,
                "4 messages became a summary",
                Place(0, "line 3"),
                900,
                300,
                (Place(0, "line 1"), Place(0, "line 2")),
                2,
                "s-1",
            ),
        ),
        "compactions": (COMPACTION,),
        "break_rates": (BreakRate("s-1", "compaction", "threshold 0.5", 1, 1, 1, 40, estimated=True),),
        "sidecars": SIDECARS,
        "findings": (Finding("CTX101", "warning", (2,), "/messages/0", "the stored reply is shorter", "three"),),
        "notices": ("line 9 is torn",),
        "totals": Totals(2, 1, 0, 1, 0, 150, 0.85, None),
    }
    return Snapshot(**{**values, **changes})  # type: ignore[arg-type] - keyword by keyword they are right


def view(
    call: Call,
    *,
    served: bytes = SERVED,
    rebuilt: bytes = REBUILT,
    delivered: str = "three plums",
    stored: str = "three",
    echoed: str = "three!",
) -> CallView:
    return CallView(
        call=call,
        served=Body(served, "anthropic-messages", ()),
        rebuilt=Body(rebuilt, "anthropic-messages", ()),
        pieces=(),
        previous=None,
        previous_n=None,
        effective=None,
        delivered=b"{}",
        delivered_blocks=(Block("text", delivered),),
        stored_blocks=(Block("text", stored),),
        echoed_blocks=(Block("text", echoed),),
        echoed_n=3,
    )
