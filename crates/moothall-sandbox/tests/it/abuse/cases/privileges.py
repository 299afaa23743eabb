# Becoming somebody else, and setuid programs to do it with.
import ctypes
import os
import resource
import stat

from attempt import attempt, held, hole, refused, saw, syscall

attempt("setuid 0", lambda: os.setuid(0) or "done", "EINVAL")
attempt("setgid 0", lambda: os.setgid(0) or "done", "EINVAL")
attempt("setresuid 0", lambda: os.setresuid(0, 0, 0) or "done", "EINVAL")
attempt("setgroups 0", lambda: os.setgroups([0]) or "done", "EINVAL")
attempt("setuid 1001", lambda: os.setuid(1001) or "done", "EINVAL")
# It never fails; the second call says who it is now.
attempt("setfsuid 0", lambda: refused() if (syscall(122, 0), syscall(122, -1))[1] == 1000 else "done")


def all_capabilities():
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6)
    return syscall(126, header, data)


attempt("all capabilities", all_capabilities)
attempt("an ambient capability", lambda: syscall(157, 47, ctypes.c_ulong(2), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)), "EINVAL")
attempt("new privileges again", lambda: syscall(157, 38, ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)), "EINVAL")
for name in ("NOFILE", "FSIZE", "CPU", "NPROC", "CORE", "MEMLOCK", "RTPRIO"):
    number = getattr(resource, f"RLIMIT_{name}")
    _, hard = resource.getrlimit(number)
    if hard in (resource.RLIM_INFINITY, -1):
        held(f"raise {name}", "it has no limit")
        continue

    def higher():
        try:
            resource.setrlimit(number, (hard + 1, hard + 1))
        except ValueError:
            raise PermissionError(1, "")
        return hard + 1
    attempt(f"raise {name}", higher)
attempt("a better priority", lambda: os.setpriority(os.PRIO_PROCESS, 0, -10) or "done")
attempt("real-time scheduling", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)) or "done")
saw("who", [os.getuid(), os.geteuid(), os.getgid(), os.getegid(), os.getgroups()])
found = []
for top in ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec", "/usr/local"):
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if not name.startswith("python3")]
        for name in files:
            path = f"{folder}/{name}"
            mode = os.lstat(path).st_mode
            if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
                found.append(path)
if found:
    hole("setuid programs", found)
