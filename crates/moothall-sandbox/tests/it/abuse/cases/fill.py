# Fills a folder, 200 MB at most. Its argument is where.
import sys

from attempt import attempt, hole, saw

place, most = sys.argv[2], int(sys.argv[3])
written = 0
piece = b"x" * (1 << 20)
try:
    for number in range(10):
        with open(f"{place}/filled-{number}", "wb", buffering=0) as file:
            for _ in range(20):
                written += file.write(piece)
except OSError as error:
    saw("refused", error.errno in (28, 122))
    saw("within the limit", written <= most)
else:
    hole("disk", written)
