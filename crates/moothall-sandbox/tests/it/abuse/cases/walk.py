# Walks /proc (but not the processes) and /sys and opens everything for writing: at most 4,000 files.
import os

from attempt import held, hole, opens

looked, opened = 0, []
for top in ("/proc", "/sys"):
    for folder, folders, files in os.walk(top):
        if folder == "/proc":
            folders[:] = [name for name in folders if not name.isdigit() and name not in ("self", "thread-self")]
        for name in files:
            path = f"{folder}/{name}"
            looked += 1
            if looked > 4000:
                break
            try:
                opens(path, os.O_WRONLY | os.O_NOFOLLOW)
                opened.append(path)
            except OSError:
                pass
for path in opened:
    hole(f"{path} for writing", "opened")
held("the rest", "closed")
