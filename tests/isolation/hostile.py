"""Hostile PDF files, and unusual ones that are harmless. All are small until they are read."""

import io
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Final

import pikepdf

PAGE: Final = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<<>>/Contents 4 0 R>>"
CATALOG: Final = b"<</Type/Catalog/Pages 2 0 R>>"
ONE_PAGE: Final = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
ZLIB_HEADER: Final = b"\x78\xda"
LAST_BLOCK: Final = b"\x03\x00"  # an empty one


def pdf(*objects: bytes, trailer: bytes = b"") -> bytes:
    """Return a file of these objects, numbered from 1; the first is the catalog."""
    content, places = bytearray(b"%PDF-1.7\n"), list[int]()
    for number, each in enumerate(objects, start=1):
        places.append(len(content))
        content += b"%d 0 obj\n%b\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return bytes(content) + (
        b"xref\n0 %d\n0000000000 65535 f \n%btrailer\n<</Size %d/Root 1 0 R%b>>\nstartxref\n%d\n%%%%EOF\n"
        % (size, table, size, trailer, len(content))
    )


def stream(data: bytes, entries: bytes = b"") -> bytes:
    return b"<</Length %d%b>>\nstream\n%b\nendstream" % (len(data), entries, data)


def page_of(contents: bytes) -> bytes:
    """Return a file of one page with this content stream."""
    return pdf(CATALOG, ONE_PAGE, PAGE, contents)


def compressed_stream(times: int, mebibytes: int) -> bytes:
    """Return a stream of `mebibytes` of repeated operators, compressed `times` times in a row."""
    piece = b"0 0 m " * (1024 * 1024 // 6)
    compressor = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    # A full flush makes the block independent of what comes before it, so it can be repeated.
    block = compressor.compress(piece) + compressor.flush(zlib.Z_FULL_FLUSH)
    checksum = reduce(lambda sum_, _: zlib.adler32(piece, sum_), range(mebibytes), 1)
    data = ZLIB_HEADER + block * mebibytes + LAST_BLOCK + checksum.to_bytes(4, "big")
    for _ in range(times - 1):
        data = zlib.compress(data, 9)
    return stream(data, b"/Filter[%b]" % (b"/FlateDecode" * times))


def compression_bomb() -> bytes:
    """Return less than a kilobyte that decompresses to a gigabyte of operators."""
    return page_of(compressed_stream(3, 1024))


def image_bomb() -> bytes:
    """Return a few kilobytes with an image of 30,000 × 30,000 pixels, which a renderer would allocate."""
    data = zlib.compress(zlib.compress(bytes(64 * 1024 * 1024), 9), 9)
    entries = b"/Type/XObject/Subtype/Image/Width 30000/Height 30000/BitsPerComponent 8/ColorSpace/DeviceRGB"
    picture = stream(data, entries + b"/Filter[/FlateDecode/FlateDecode]")
    page = PAGE.replace(b"/Resources<<>>", b"/Resources<</XObject<</X 5 0 R>>>>")
    return pdf(CATALOG, ONE_PAGE, page, stream(b"595 0 0 842 0 0 cm /X Do"), picture)


def endless_page() -> bytes:
    """Return a file with a page of 9e9 × 9e9 points."""
    return page_of(stream(b"")).replace(b"[0 0 595 842]", b"[0 0 9e9 9e9]")


def form_in_itself() -> bytes:
    entries = b"/Type/XObject/Subtype/Form/BBox[0 0 595 842]/Resources<</XObject<</X 5 0 R>>>>"
    page = PAGE.replace(b"/Resources<<>>", b"/Resources<</XObject<</X 5 0 R>>>>")
    return pdf(CATALOG, ONE_PAGE, page, stream(b"/X Do"), stream(b"/X Do /X Do", entries))


def billion_forms() -> bytes:
    """Return a file with ten levels of forms, each of which shows the next ten times."""
    levels = range(5, 15)
    forms = [
        stream(
            b"/X Do " * 10,
            b"/Type/XObject/Subtype/Form/BBox[0 0 595 842]/Resources<</XObject<</X %d 0 R>>>>" % (level + 1),
        )
        for level in levels
    ]
    last = stream(b"BT /F 9 Tf (a) Tj ET", b"/Type/XObject/Subtype/Form/BBox[0 0 595 842]/Resources<<>>")
    page = PAGE.replace(b"/Resources<<>>", b"/Resources<</XObject<</X 5 0 R>>>>")
    return pdf(CATALOG, ONE_PAGE, page, stream(b"/X Do"), *forms, last)


def deep_arrays() -> bytes:
    return page_of(stream(b"[" * 1_000_000 + b"]" * 1_000_000)).replace(b"/Size", b"/Deep %b/Size" % (b"[" * 100_000))


def deep_page_tree() -> bytes:
    """Return a file with two thousand page tree nodes above its only page."""
    nodes = [b"<</Type/Pages/Count 1/Kids[%d 0 R]/Parent %d 0 R>>" % (at + 1, at - 1) for at in range(2, 2002)]
    page = b"<</Type/Page/Parent 2001 0 R/MediaBox[0 0 595 842]>>"
    return pdf(CATALOG, *nodes, page)


def page_tree_in_a_ring() -> bytes:
    return pdf(CATALOG, b"<</Type/Pages/Count 5000/Kids[3 0 R 2 0 R]>>", b"<</Type/Pages/Count 9/Kids[2 0 R 3 0 R]>>")


def pages(count: int) -> bytes:
    """Return a file of this many pages that are all the same object, so that the file stays small."""
    kids = b"3 0 R " * count
    return pdf(CATALOG, b"<</Type/Pages/Kids[%b]/Count %d>>" % (kids, count), PAGE, stream(b""))


def missing_pages() -> bytes:
    return pdf(CATALOG, b"<</Type/Pages/Kids[3 0 R]/Count 2000000000>>", PAGE, stream(b""))


def table_in_a_ring() -> bytes:
    """Return a file whose cross-reference table names itself as the previous table."""
    content = page_of(stream(b""))
    start = content.rindex(b"xref\n0")
    return content.replace(b"/Root", b"/Prev %d/Root" % start)


def many_letters() -> bytes:
    """Return 10 kB with four million characters, on 400 pages that share one content stream."""
    line = b"0 -7 Td (%b) Tj " % (b"a statement of nothing " * 5)
    data = zlib.compress(b"BT /F 6 Tf 20 830 Td " + line * 110 + b"ET", 9)
    page = PAGE.replace(b"/Resources<<>>", b"/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>")
    tree = b"<</Type/Pages/Kids[%b]/Count 400>>" % (b"3 0 R " * 400)
    return pdf(CATALOG, tree, page, stream(data, b"/Filter/FlateDecode"))


def unprintable_letters() -> bytes:
    """Return text whose font maps characters to NUL, half a surrogate pair, a right-to-left mark and an escape."""
    names = b"<41><0000> <42><D800> <43><202E> <44><001B>"
    to_unicode = (
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def 1 begincodespacerange <00><FF> "
        b"endcodespacerange 4 beginbfchar %b endbfchar endcmap end end" % names
    )
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 5 0 R>>"
    page = PAGE.replace(b"/Resources<<>>", b"/Resources<</Font<</F %b>>>>" % font)
    shown = b"BT /F 12 Tf 50 700 Td (01/02/2025 ABCD 12.00 112.00) Tj ET"
    return pdf(CATALOG, ONE_PAGE, page, stream(shown), stream(to_unicode))


def out_of_range_numbers() -> bytes:
    return page_of(stream(b"BT 1e400 -1e400 99999999999999999999999999 Td 0 Tf ET")).replace(
        b"[0 0 595 842]", b"[-1e400 99999999999999999999 nan inf]"
    )


def zip_before(content: bytes) -> bytes:
    """Return a ZIP archive that ends in a PDF."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as zip_file:
        zip_file.writestr("statement.exe", b"MZ")
    return archive.getvalue() + content


def zip_after(content: bytes) -> bytes:
    archive = io.BytesIO(content)
    with zipfile.ZipFile(archive, "a") as zip_file:
        zip_file.writestr("statement.exe", b"MZ")
    return archive.getvalue()


def web_page(content: bytes) -> bytes:
    """Return an HTML page that holds a PDF in a comment."""
    return b"<!doctype html><script>alert(1)</script><!--\n" + content + b"\n-->"


def with_header_at(content: bytes, at: int) -> bytes:
    """Return the file with its header at byte `at`; readers accept up to 1,024."""
    return b"\n".rjust(at, b"%") + content


def encrypt_pdf(content: bytes, *, owner: str, user: str = "") -> bytes:
    """Encrypt the file. Without a user password anybody may read it; only changes need the owner's."""
    encrypted = io.BytesIO()
    with pikepdf.open(io.BytesIO(content)) as opened:
        opened.save(encrypted, encryption=pikepdf.Encryption(owner=owner, user=user, R=6))
    return encrypted.getvalue()


def with_script(content: bytes) -> bytes:
    """Return the file with actions that run JavaScript and a program when a viewer opens it."""
    changed = io.BytesIO()
    with pikepdf.open(io.BytesIO(content)) as opened:
        script = pikepdf.Dictionary(S=pikepdf.Name.JavaScript, JS="while (true) app.alert('x');")
        launch = pikepdf.Dictionary(S=pikepdf.Name.Launch, F="/bin/sh", Next=script)
        opened.Root.OpenAction = opened.make_indirect(launch)
        opened.Root.AA = pikepdf.Dictionary(WC=script)
        opened.save(changed)
    return changed.getvalue()


def with_attachment(content: bytes, name: str) -> bytes:
    changed = io.BytesIO()
    with pikepdf.open(io.BytesIO(content)) as opened:
        opened.attachments[name] = b"MZ" + bytes(100_000)
        opened.save(changed)
    return changed.getvalue()


BOMBS: Final[Mapping[str, Callable[[], bytes]]] = {
    make.__name__: make
    for make in (
        compression_bomb, image_bomb, endless_page, form_in_itself, billion_forms, deep_arrays, deep_page_tree,
        page_tree_in_a_ring, missing_pages, table_in_a_ring, many_letters, unprintable_letters,
        out_of_range_numbers,
    )
}  # fmt: skip
NOT_PDF: Final[Sequence[bytes]] = (b"", b"%", b"%PDF-", b"%PDF-1.7\n", b"GIF89a" + bytes(2000), b"\0" * 4096)
