# More bytes than are brought back: a file beyond the most for one, and several that fit.
import os

os.makedirs("out", exist_ok=True)
for name, megabytes in (("a", 17), ("b", 2), ("c", 1)):
    with open(f"out/{name}", "wb") as file:
        for _ in range(megabytes):
            file.write(b"x" * (1 << 20))
