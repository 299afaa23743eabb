# 10 MB on standard output.
import sys

for _ in range(160):
    sys.stdout.write("y" * 65535 + "\n")
