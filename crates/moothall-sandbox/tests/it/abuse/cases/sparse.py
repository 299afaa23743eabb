# A file that says that it is a terabyte long, and one that is a little longer than a file may be.
import os

from attempt import attempt

os.makedirs("out", exist_ok=True)
for name, length in (("terabyte", 1 << 40), ("one byte more", (64 << 20) + 1)):
    def lengthen():
        with open(f"out/{name}", "wb") as file:
            os.truncate(file.fileno(), length)
        return length
    attempt(f"a file of {length} bytes", lengthen, "EFBIG", "ENOSPC", "EINVAL")
with open("out/sparse", "wb") as file:
    os.truncate(file.fileno(), 17 << 20)
with open("out/small", "wb") as file:
    file.write(b"small")
