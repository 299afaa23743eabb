# Hard links to files that are not its own, and many names for one file.
import os

from attempt import attempt

os.makedirs("out", exist_ok=True)
for file in ("/etc/passwd", "/etc/shadow", "/inputs/given.txt", "/proc/1/environ", "/moothall-guest"):
    name = "out/" + file.replace("/", "-")
    attempt(f"a hard link to {file}", lambda: os.link(file, name) or "made", "EXDEV")
with open("out/a", "w") as file:
    file.write("one file")
for name in "bcd":
    os.link("out/a", f"out/{name}")
