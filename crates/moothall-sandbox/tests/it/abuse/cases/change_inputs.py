# Changes what was given.
import ctypes
import os

from attempt import LIBC, attempt, opens, saw, syscall

file = "/inputs/given.txt"
attempt("open for writing", lambda: opens(file, os.O_WRONLY))
attempt("truncate", lambda: os.truncate(file, 0) or "done")
attempt("a new file", lambda: opens("/inputs/new", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
attempt("a new folder", lambda: os.mkdir("/inputs/new") or "made")
attempt("remove", lambda: os.unlink(file) or "done")
attempt("rename", lambda: os.rename(file, "/inputs/other") or "done")
attempt("replace", lambda: os.rename("/workspace/attempt.py", file) or "done", "EXDEV")
attempt("chmod", lambda: os.chmod(file, 0o666) or "done")
attempt("chmod of the folder", lambda: os.chmod("/inputs", 0o777) or "done")
attempt("chown", lambda: os.chown(file, 1000, 1000) or "done")
attempt("times", lambda: os.utime(file, (0, 0)) or "done")
attempt("attributes", lambda: os.setxattr(file, "user.moothall", b"x") or "done", "EOPNOTSUPP")
attempt("rename the folder", lambda: os.rename("/inputs", "/workspace/inputs") or "done", "EXDEV", "EBUSY")
attempt("remove the folder", lambda: os.rmdir("/inputs") or "done", "EBUSY", "ENOTEMPTY")
# 4096 is a bind mount, 32 a remount, 2 to detach.
attempt("mount over", lambda: syscall(165, b"/tmp", b"/inputs", None, ctypes.c_ulong(4096), None))
attempt("remount", lambda: syscall(165, None, b"/inputs", None, ctypes.c_ulong(32), None))
attempt("unmount", lambda: syscall(166, b"/inputs", 2))
attempt("through its descriptor", lambda: opens(f"/proc/self/fd/{os.open(file, os.O_RDONLY)}", os.O_WRONLY))
with open(file) as given:
    saw("given", given.read())
