"""Records in a file: spelled, found again, told from everything else."""

from __future__ import annotations

import io
import json
import zlib

from hypothesis import given, settings
from hypothesis import strategies as st

from ctxscope.capture.record import BEGINS, Damage, Record, first, records, spell

payloads = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([b"\n" + BEGINS, BEGINS + b'"t":"req","n":3,"crc":1}\nabc\n', b'"crc":', b"\n\n"]),
)
fields = st.dictionaries(st.sampled_from(["id", "ts", "what"]), st.one_of(st.integers(), st.text()), max_size=3)
whole = st.tuples(st.sampled_from(["req", "res", ""]), fields, payloads).map(lambda one: spell(*one))
torn = st.integers(5, 90).map(lambda cut: spell("req", {"id": 1}, bytes(50))[:cut])


def found(data: bytes) -> list[Record | Damage]:
    return list(records(io.BytesIO(data), 0, len(data)))


@given(st.lists(whole, max_size=5), st.integers(0, 30))
@settings(deadline=None)
def test_whole_records_are_found_one_behind_the_other(spelled: list[bytes], cut: int):
    data = b"".join(spelled)
    assert b"".join(data[item.at : item.end] for item in found(data)) == data
    assert [data[item.at : item.end] for item in found(data)] == spelled
    left = data[: max(0, len(data) - cut)]
    ends = [item.end for item in found(data) if item.end <= len(left)]
    assert [item.end for item in found(left) if isinstance(item, Record)] == ends


@given(st.lists(st.tuples(st.booleans(), whole, st.one_of(st.binary(max_size=40), torn)), max_size=5))
@settings(deadline=None)
def test_a_record_behind_anything_is_found_where_it_begins_a_line(parts: list[tuple[bool, bytes, bytes]]):
    data = b"".join((junk + b"\n" if before else b"") + record for before, record, junk in parts)
    items = found(data)
    assert [item.at for item in items[1:]] == [item.end for item in items[:-1]]
    assert [data[item.at : item.end] for item in items if isinstance(item, Record)] == [
        record for _, record, _ in parts
    ]
    assert not items or items[-1].end == len(data)


def test_a_header_is_one_line_of_plain_json():
    data = spell("req", {"id": 7, "target": "/\u2028\udc80é"}, b"\xff\n")
    head, rest = data.split(b"\n", 1)
    assert json.loads(head) == {
        "v": 1,
        "t": "req",
        "id": 7,
        "target": "/\u2028\udc80é",
        "n": 2,
        "crc": _crc(head, b"\xff\n"),
    }
    assert head.isascii()
    assert rest == b"\xff\n\n"


def _crc(head: bytes, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(head[: head.rindex(b',"crc"')]))


def test_a_length_beyond_the_file_or_of_another_kind_is_no_record():
    for length in (b"10000000000000", b"-1", b"1.0", b'"1"', b"true", b"null"):
        head = BEGINS + b'"t":"x","n":' + length
        data = head + b',"crc":%d}\n\n\n' % zlib.crc32(b"\n", zlib.crc32(head))
        assert found(data) == []
        good = spell("x", {})
        assert found(data + good) == [
            Damage(0, len(data)),
            Record("x", _fields("x"), len(data), len(data + good) - 1, b""),
        ]


def _fields(kind: str) -> dict[str, object]:
    return {"v": 1, "t": kind, "n": 0}


def test_only_the_first_record_is_asked_for():
    data = spell("meta", {"id": 1}) + spell("req", {"id": 2})
    record = first(io.BytesIO(data), len(data))
    assert record is not None
    assert record.kind == "meta"
    assert first(io.BytesIO(b"?" + data), len(data) + 1) is None


def test_a_damaged_stretch_over_several_blocks_is_skipped():
    good = spell("req", {"id": 2}, b"x")
    for filler in (BEGINS * 300_000, (b"\n" + BEGINS) * 100_000, b"\n" * 2_000_000):
        data = spell("meta", {}) + filler + b"\n" + good
        items = found(data)
        assert [type(item) for item in items] == [Record, Damage, Record]
        assert items[-1].end == len(data)


def test_lines_that_only_claim_long_payloads_are_given_up():
    class Counting(io.BytesIO):
        taken = 0

        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            self.taken += len(data)
            return data

    data = b"\n".join(BEGINS + b'"t":"x","n":%d,"crc":1}' % (1_000_000 - n) for n in range(1000)) + bytes(1_100_000)
    file = Counting(data)
    assert list(records(file, 0, len(data))) == []
    assert file.taken < 12 * len(data)
