"""Small PDFs in the forms that writers give them, without anything to see on their pages."""

from __future__ import annotations

import zlib

CONTENT = b"<< /Length 44 >>\nstream\nBT (/Type /Page and endob j, drawn as text) Tj ET\nendstream"


def tree(pages: int, each: int = 3) -> list[bytes]:
    """Root, nodes of ``each`` pages, and the pages, as dictionaries."""
    sizes = [min(each, pages - at) for at in range(0, pages, each)]
    nodes = [b"<< /Type /Pages /Count %d /Parent 2 0 R /Kids [] >>" % size for size in sizes]
    return [
        b"<< /Type /Catalog /Pages 2 0 R /Outlines 9 0 R >>",
        b"<< /Type/Pages /Kids [ ] /Count %d >>" % pages,
        *nodes,
        *[b"<</Type /Page/Parent 3 0 R /MediaBox [0 0 9 9]>>"] * pages,
        b"<< /Type /Outlines /Count 999 >>",
    ]


def plain(objects: list[bytes]) -> bytes:
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % (n, item) for n, item in enumerate((*objects, CONTENT), 1))
    return b"%PDF-1.4\n%\xe2\xe3\n" + body + b"xref\n0 1\ntrailer << /Root 1 0 R >>\nstartxref\n9\n%%EOF\n"


def packed(objects: list[bytes]) -> bytes:
    """The same inside an object stream, as writers of PDF 1.5 do."""
    places, at = [], 0
    for n, item in enumerate(objects, 1):
        places.append(b"%d %d" % (n, at))
        at += len(item) + 1
    head = b" ".join(places) + b"\n"
    stream = zlib.compress(head + b"\n".join(objects))
    about = b"<< /Type /ObjStm /N %d /First %d /Filter /FlateDecode /Length %d >>" % (
        *(len(objects), len(head), len(stream)),
    )
    return plain([about + b"\nstream\r\n" + stream + b"\nendstream"])


def linearized(pages: int) -> bytes:
    rest = b" /N %d /O 5 /T 99 >>\nendobj\n" % pages + plain(tree(pages)) + b"startxref\n0\n%%EOF\n"
    head = b"%PDF-1.4\n1 0 obj\n<< /Linearized 1 /L "
    return head + b"%9d" % (len(head) + 9 + len(rest)) + rest
