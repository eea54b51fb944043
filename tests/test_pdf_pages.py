"""Pages of a PDF are told where the file says them in two ways that agree, and by nothing else."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.analysis.pdf_pages import pdf_pages
from tests.pdf_files import linearized, packed, plain, tree


def told(raw: bytes) -> int | None:
    return pdf_pages(base64.b64encode(raw).decode())


@given(st.integers(1, 40), st.integers(1, 9))
def test_pages_are_counted_where_the_tree_says_as_many(pages, each):
    objects = tree(pages, each)
    assert [told(form(objects)) for form in (plain, packed)] == [pages, pages]
    assert told(linearized(pages)) == pages


@pytest.mark.parametrize("form", [plain, packed])
def test_a_file_that_contradicts_itself_or_was_changed_has_pages_nobody_told(form):
    objects = tree(4)
    assert told(form([*objects, b"<< /Type /Page >>"])) is None  # an old page that nothing names any more
    assert told(form([objects[0], *objects[2:]])) is None
    whole = form(objects)
    assert told(whole + form(tree(1))) is None  # saved again on top
    assert told(whole.replace(b"trailer << ", b"trailer << /Encrypt 8 0 R ")) is None
    assert told(b"x" + whole) is None
    assert told(linearized(4) + b"5 0 obj\n<< /Type /Page >>\nendobj\nstartxref\n9\n%%EOF\n") is None


@pytest.mark.parametrize("data", ["", "%PDF-1.4", "JVBERi0", "JVBERi0=", "\ud800", "not base64!", "A"])
def test_what_is_no_pdf_has_none(data):
    assert pdf_pages(data) is None


@given(st.sampled_from([plain(tree(3)), packed(tree(3)), linearized(3)]), st.data())
def test_damage_is_no_error(whole, data):
    cut = data.draw(st.integers(0, len(whole)))
    at = data.draw(st.integers(0, len(whole)))
    damaged = whole[:at] + data.draw(st.binary(max_size=6)) + whole[min(at, cut) :]
    assert told(damaged) is None or told(damaged) > 0


def test_numbers_that_no_file_has_are_no_error():
    long = b"7" * 9000
    assert told(packed(tree(3)).replace(b"/First ", b"/First " + long)) is None
    assert told(plain([b"<< /Type /Pages /Count %s >>" % long, b"<< /Type /Page >>"])) is None
    assert told(linearized(3).replace(b"/N 3", b"/N " + long)) is None


def test_many_openings_without_an_end_cost_what_they_are_long():
    assert told(b"%PDF-1.4\n" + b"1 0 obj << /Linearized stream\n" * 200_000 + b"startxref") is None
