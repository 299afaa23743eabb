# Prints and never stops.
import os

piece = b"y" * 65536
while True:
    os.write(1, piece)
