# One file beyond the limit for a file, where the disk has room.
from attempt import hole, saw

written = 0
try:
    with open("/workspace/large", "wb", buffering=0) as file:
        for _ in range(40):
            written += file.write(b"x" * (1 << 20))
except OSError as error:
    saw("refused", error.errno == 27)
    saw("bytes", written)
else:
    hole("file size", written)
