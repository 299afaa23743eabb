# Is given 8 MB, reads one byte a while, and does not end.
import sys
import time

while True:
    sys.stdin.buffer.raw.read(1)
    time.sleep(0.1)
