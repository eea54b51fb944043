"""Records in a file: spelled, found again, told from everything else."""

from __future__ import annotations

import io
import json
import zlib

from hypothesis import given, settings
from hypothesis import strategies as st

from ctxscope.capture.record import BEGINS, Damage, Record, first, headers, records, spell

INNER = b"\n" + spell("req", {"id": 9}, b"not the file's own") + bytes(60)
"""A payload that holds a whole record."""
payloads = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([b"\n" + BEGINS, BEGINS + b'"t":"req","n":3,"crc":1}\nabc\n', b'"crc":', b"\n\n", INNER]),
)
fields = st.dictionaries(st.sampled_from(["id", "ts", "what"]), st.one_of(st.integers(), st.text()), max_size=3)
whole = st.tuples(st.sampled_from(["req", "res", ""]), fields, payloads).map(lambda one: spell(*one))
torn = st.integers(5, 90).map(lambda cut: spell("req", {"id": 1}, bytes(50))[:cut])


class Counting(io.BytesIO):
    taken = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.taken += len(data)
        return data


def found(data: bytes) -> list[Record | Damage]:
    return list(records(io.BytesIO(data), 0, len(data)))


def kinds(data: bytes) -> list[str]:
    return [item.kind for item in found(data) if isinstance(item, Record)]


def line(length: bytes, payload: bytes = b"\n") -> bytes:
    """The line of a record, right but for what it claims."""
    head = BEGINS + b'"t":"x","n":' + length
    seed = zlib.crc32(head)
    return head + b',"hcrc":%d,"crc":%d}\n' % (seed, zlib.crc32(payload, seed))


@given(st.lists(whole, max_size=5), st.integers(0, 90))
@settings(deadline=None)
def test_whole_records_are_found_one_behind_the_other(spelled: list[bytes], cut: int):
    data = b"".join(spelled)
    assert b"".join(data[item.at : item.end] for item in found(data)) == data
    assert [data[item.at : item.end] for item in found(data)] == spelled
    left = data[: max(0, len(data) - cut)]
    ends = [item.end for item in found(data) if item.end <= len(left)]
    assert [item.end for item in found(left)] == ends
    assert [header.end for header in headers(io.BytesIO(left), len(left))] == ends


@given(st.lists(st.tuples(st.booleans(), whole, st.one_of(st.binary(max_size=40), torn)), max_size=5))
@settings(deadline=None)
def test_a_record_behind_anything_is_found_where_it_begins_a_line(parts: list[tuple[bool, bytes, bytes]]):
    parts = [*parts, (False, spell("end", {}, bytes(90)), b"")]  # so that nothing before claims to go on past the end
    data = b"".join((junk + b"\n" if before else b"") + record for before, record, junk in parts)
    items = found(data)
    assert [item.at for item in items[1:]] == [item.end for item in items[:-1]]
    assert [data[item.at : item.end] for item in items if isinstance(item, Record)] == [
        record for _, record, _ in parts
    ]
    assert items[-1].end == len(data)


def test_a_header_is_one_line_of_plain_json():
    data = spell("req", {"id": 7, "target": "/\u2028\udc80é"}, b"\xff\n")
    head, rest = data.split(b"\n", 1)
    assert json.loads(head) == {
        "v": 1,
        "t": "req",
        "id": 7,
        "target": "/\u2028\udc80é",
        "n": 2,
        "hcrc": _crc(head, b""),
        "crc": _crc(head, b"\xff\n"),
    }
    assert head.isascii()
    assert rest == b"\xff\n\n"


def _crc(head: bytes, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(head[: head.rindex(b',"hcrc"')]))


def test_a_length_that_is_none_is_no_record():
    for length in (b"-1", b"1.0", b'"1"', b"true", b"null"):
        data, good = line(length) + b"\n\n", spell("x", {})
        assert found(data) == []
        damage, record = found(data + good)
        assert damage == Damage(0, len(data))
        assert isinstance(record, Record)
        assert (record.at, record.data) == (len(data), b"")


def test_a_length_beyond_the_file_is_a_record_still_being_written_only_where_its_line_proves_it():
    good, proven = spell("x", {}), line(b"10000000000000")
    assert found(good + proven + b"\n" + good) == found(good)
    changed = proven.replace(b'"n":1', b'"n":2')
    items = found(good + changed + b"\n" + good)
    behind = len(good + changed) + 1
    assert [(type(item), item.at, item.end) for item in items[1:]] == [
        (Damage, len(good), behind),
        (Record, behind, behind + len(good)),
    ]


def test_nothing_in_a_payload_that_is_not_all_there_is_a_record():
    meta, outer = spell("meta", {}), spell("res", {"id": 1}, INNER)
    for cut in range(len(outer)):
        assert kinds(meta + outer[:cut]) == ["meta"], cut
        assert kinds(meta + b"damage\n" + outer[:cut]) == ["meta"], cut


def test_nothing_in_a_payload_that_is_damaged_is_a_record():
    meta, outer, good = spell("meta", {}), spell("res", {"id": 1}, INNER), spell("end", {"id": 1})
    harmed = meta + outer[:-20] + b"?" + outer[-19:]
    damage = found(harmed + good)[1]
    assert damage == Damage(len(meta), len(meta + outer))
    assert kinds(harmed + good) == ["meta", "end"]
    assert kinds(harmed) == ["meta"]


def test_what_follows_a_payload_of_which_bytes_are_missing_is_found():
    meta, outer, good = spell("meta", {}), spell("res", {"id": 1}, bytes(300)), spell("end", {"id": 1})
    for gone in (1, 40, 250):
        shorter = outer[: -5 - gone] + outer[-5:]
        assert kinds(meta + shorter + good * 10) == ["meta", *["end"] * 10]


def test_lines_are_read_without_their_payloads():
    data = b"".join(spell("res", {"id": n}, bytes(200_000)) for n in range(20))
    file = Counting(data + b"junk\n" + spell("end", {"id": 3}) + data[:300_000])
    read = [(header.kind, header.fields["id"]) for header in headers(file, len(file.getvalue()))]
    assert read == [*(("res", n) for n in range(20)), ("end", 3), ("res", 0)]
    assert file.taken < 400_000


def test_only_the_first_record_is_asked_for():
    data = spell("meta", {"id": 1}) + spell("req", {"id": 2})
    record = first(io.BytesIO(data), len(data))
    assert record is not None
    assert record.kind == "meta"
    assert first(io.BytesIO(b"?" + data), len(data) + 1) is None
    assert first(io.BytesIO(data), 20) is None


def test_a_damaged_stretch_over_several_blocks_is_skipped():
    good = spell("req", {"id": 2}, b"x")
    for filler in (BEGINS * 300_000, (b"\n" + BEGINS) * 100_000, b"\n" * 2_000_000):
        data = spell("meta", {}) + filler + b"\n" + good
        items = found(data)
        assert [type(item) for item in items] == [Record, Damage, Record]
        assert items[-1].end == len(data)


def test_lines_that_only_claim_long_payloads_are_given_up():
    lines = b"\n".join(line(b"%d" % (1_000_000 - n)) for n in range(1000))
    file = Counting(lines + b"\n" + bytes(1_100_000))
    size = len(file.getvalue())
    assert {type(item) for item in records(file, 0, size)} == {Damage}
    assert file.taken < 12 * size
