"""Takes the text out of one PDF. Runs in a sandbox, on a file that nobody trusts."""

import os
import sys

MOST = 1_500_000
PAGES = 500


def main():
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError:
        return 10
    try:
        reader = PdfReader("/inputs/document.pdf", strict=False)
        # Many files are encrypted with an empty password, so that readers refuse to print them.
        if reader.is_encrypted:
            try:
                if not reader.decrypt(""):
                    return 11
            except Exception:
                return 11
        pages, length = [], 0
        for number, page in enumerate(reader.pages):
            if number >= PAGES or length >= MOST:
                break
            try:
                text = page.extract_text() or ""
            except (MemoryError, RecursionError):
                raise
            except Exception:
                text = ""
            text = text.encode("utf-8", "replace").decode("utf-8")
            text = "".join(c if c.isprintable() or c in "\n\t" else " " for c in text)
            pages.append(text)
            length += len(text)
    except MemoryError:
        return 14
    except (PyPdfError, RecursionError, Exception):
        return 12
    whole = "\f".join(pages)
    if not whole.strip():
        return 13
    os.makedirs("out", exist_ok=True)
    encoded = whole.encode("utf-8")[: 2 << 20].decode("utf-8", "ignore")
    with open("out/text.txt", "w", encoding="utf-8") as out:
        out.write(encoded)
    return 0


sys.exit(main())
