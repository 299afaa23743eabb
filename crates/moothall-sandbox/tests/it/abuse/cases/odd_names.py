# Names that are not names: line ends, control characters, no text at all, and what looks like a path.
import os

os.makedirs(b"out/..hidden")
names = [b"line\nend", b"escape\x1b[2J", b"\xff\xfe", b"back\\slash", b"..\\up", b"...", b" ", b"-rf",
         b"tab\t", b"\x7f", b"C:", b"n" * 255, "na\u0308me".encode(), "\u202egpj.exe".encode(), b"..hidden/..."]
for name in names:
    with open(b"out/" + name, "wb") as file:
        file.write(b"odd")
