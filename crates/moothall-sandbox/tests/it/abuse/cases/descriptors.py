# What is open. The listing itself has one open for a moment.
import os
import stat

from attempt import hole, saw

found = {}
for name in os.listdir("/proc/self/fd"):
    try:
        mode = os.fstat(int(name)).st_mode
    except OSError:
        continue
    found[int(name)] = "pipe" if stat.S_ISFIFO(mode) else oct(mode)
saw("open", sorted(found.items()))
