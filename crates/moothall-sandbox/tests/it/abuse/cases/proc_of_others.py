# What is behind /proc of pid 1 and of the parent: memory, environment, root, files.
import os

from attempt import attempt, hole, lists, opens

READ, WRITE = os.O_RDONLY, os.O_WRONLY
for pid in {1, os.getppid()}:
    if pid == 0:
        continue
    for name in ("environ", "maps", "auxv", "stack", "syscall", "io", "personality", "pagemap", "root", "cwd", "exe"):
        attempt(f"/proc/{pid}/{name}", lambda: opens(f"/proc/{pid}/{name}", READ))
    for name in ("mem", "oom_score_adj", "clear_refs", "attr/current", "uid_map", "coredump_filter", "timerslack_ns"):
        attempt(f"/proc/{pid}/{name} for writing", lambda: opens(f"/proc/{pid}/{name}", WRITE))
    for name in ("fd", "fdinfo", "task", "ns", "map_files"):
        attempt(f"/proc/{pid}/{name}/", lambda: lists(f"/proc/{pid}/{name}"))
    for name in ("mnt", "pid", "net", "user", "ipc", "uts", "cgroup"):
        attempt(f"/proc/{pid}/ns/{name}", lambda: opens(f"/proc/{pid}/ns/{name}", READ))
    attempt(f"/proc/{pid}/root/etc/shadow", lambda: opens(f"/proc/{pid}/root/etc/shadow", READ))
others = [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) not in (1, os.getpid(), os.getppid())]
if others:
    hole("processes of others", others)
