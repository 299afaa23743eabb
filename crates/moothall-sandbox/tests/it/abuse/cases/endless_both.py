# Two processes print on both streams and never stop.
import os

piece = b"y" * 65536
stream = 1 if os.fork() == 0 else 2
while True:
    os.write(stream, piece)
