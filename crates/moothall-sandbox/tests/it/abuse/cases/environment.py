# The environment, its own and that of everybody whom it can see.
import os

from attempt import aims, hole, saw

saw("variables", sorted(os.environ))
for pid in ["self", *filter(str.isdigit, os.listdir("/proc"))]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            words = file.read()
    except OSError:
        continue
    for name in aims()["variables"]:
        if name.encode() + b"=" in words:
            hole(f"variable {name}", f"of {pid}")
