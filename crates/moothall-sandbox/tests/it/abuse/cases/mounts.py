# Mounting, and leaving the root. What has an argument that cannot work would answer "invalid" or "not
# found" to whoever may do it, and "not permitted" to whoever may not; nothing is changed either way.
import ctypes
import os

from attempt import NO, attempt, syscall

NO_MORE = NO - {"ENOENT", "ENOTDIR", "ENODEV"}
U = ctypes.c_ulong
attempt("mount a tmpfs", lambda: syscall(165, b"none", b"/tmp", b"tmpfs", U(0), None))
attempt("mount a proc", lambda: syscall(165, b"none", b"/tmp", b"proc", U(0), None))
attempt("bind the root", lambda: syscall(165, b"/", b"/tmp", None, U(4096 | 16384), None))
attempt("remount the root", lambda: syscall(165, None, b"/", None, U(32), None))
attempt("unmount /inputs", lambda: syscall(166, b"/inputs", 2), no=NO_MORE)
attempt("open a tree", lambda: syscall(428, -100, b"/", 1))
attempt("a new file system", lambda: syscall(430, b"tmpfs", 0))
attempt("pivot the root", lambda: syscall(155, b"/moothall-no-such", b"/moothall-no-such"), no=NO_MORE)
attempt("chroot", lambda: os.chroot("/workspace") or "done")
attempt("swap off", lambda: syscall(168, b"/moothall-no-such"), no=NO_MORE)
attempt("open by handle", lambda: syscall(304, os.open("/", os.O_RDONLY), (ctypes.c_ubyte * 16)(8, 0, 0, 0, 1), 0))
