# Links out of the folder from which files are brought back.
import os

from attempt import aims

os.makedirs("out/inner")
for name, target in {
    "passwd": "/etc/passwd",
    "environ": "/proc/1/environ",
    "own-environ": "/proc/self/environ",
    "host": aims()["file"],
    "root": "/",
    "up": "../..",
    "inner/up": "../../../etc",
    "dangling": "nowhere",
    "itself": "itself",
}.items():
    os.symlink(target, f"out/{name}")
with open("out/plain", "w") as file:
    file.write("plain")
