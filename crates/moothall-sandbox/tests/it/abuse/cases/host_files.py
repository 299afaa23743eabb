# A file of the host, by every way that could lead there.
import os

from attempt import aims, attempt, opens

file = aims()["file"]
ways = ["", "/proc/1/root", "/proc/self/root", f"/proc/{os.getppid()}/root", "/proc/1/cwd", "/proc/self/cwd/../../../..",
        "/..", "/../../..", "/workspace/../..", "/host", "/rootfs", "/mnt", "/.old_root", "/oldroot", "/root", "/inputs/.."]
for way in ways:
    attempt(f"the file by {way or 'its name'}", lambda: opens(way + file, os.O_RDONLY))
for descriptor in range(3, 64):
    if os.path.exists(f"/proc/self/fd/{descriptor}"):
        attempt(f"the file by descriptor {descriptor}", lambda: opens(f"/proc/self/fd/{descriptor}/../../../../../..{file}", os.O_RDONLY))
