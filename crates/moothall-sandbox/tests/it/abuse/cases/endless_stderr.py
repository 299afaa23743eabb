# Prints on standard error and never stops.
import os

piece = b"y" * 65536
while True:
    os.write(2, piece)
