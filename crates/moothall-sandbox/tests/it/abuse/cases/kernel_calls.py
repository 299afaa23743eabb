# Calls that a program of ours never needs. Those that could do harm have an argument that cannot work:
# who may not is told "not permitted", who may is told that the argument is wrong.
import ctypes
import os

from attempt import attempt, syscall

NO = {"EPERM", "EACCES", "ENOSYS"}
U = ctypes.c_ulong
zero = ctypes.create_string_buffer(256)


def perf():
    attributes = ctypes.create_string_buffer(128)
    # Software, 112 bytes, the CPU clock; of this process.
    ctypes.memmove(attributes, (ctypes.c_uint32 * 4)(1, 112, 0, 0), 16)
    os.close(syscall(298, attributes, 0, -1, -1, U(0)))
    return "opened"


def tick():
    # modes is ADJ_TICK, and a tick of nothing.
    timex = (ctypes.c_ubyte * 256)()
    timex[1] = 0x40
    return syscall(159, timex)


def closes(descriptor):
    os.close(descriptor)
    return "opened"


attempts = {
    "reboot": lambda: syscall(169, 0, 0, 0, None),
    "load a module": lambda: syscall(313, -1, b"", 0),
    "load a module from memory": lambda: syscall(175, None, U(0), b""),
    "unload a module": lambda: syscall(176, b"moothall-no-such", 0o4000),
    "load a kernel": lambda: syscall(246, U(0), U(0), None, U(0xFFF0)),
    "load a kernel from a file": lambda: syscall(320, -1, -1, U(0), None, U(0xFFF0)),
    "account": lambda: syscall(163, b"/moothall-no-such"),
    "name the host": lambda: syscall(170, b"x", -1),
    "name the domain": lambda: syscall(171, b"x", -1),
    "turn the clock": tick,
    "read the log of the kernel": lambda: syscall(103, 3, zero, 256),
    "ports": lambda: syscall(173, U(0x80), U(1), 1),
    "all ports": lambda: syscall(172, 3),
    "bpf": lambda: syscall(321, 0, zero, 72),
    "perf": perf,
    "io_uring": lambda: closes(syscall(425, 1, zero)),
    "userfaultfd": lambda: closes(syscall(323, 0)),
    "userfaultfd of user faults": lambda: closes(syscall(323, 1)),
    "keys": lambda: syscall(250, 0, -3, 0),
    "add a key": lambda: syscall(248, b"user", b"moothall", b"x", U(1), -2),
    "ask for a key": lambda: syscall(249, b"user", b"moothall", None, -2),
    "personality": lambda: syscall(135, U(0x0040000)),
    "fanotify": lambda: closes(syscall(300, 0, 0)),
    "hang up": lambda: syscall(153),
    "lookup_dcookie": lambda: syscall(212, ctypes.c_uint64(0), zero, U(256)),
    "move pages": lambda: syscall(279, 1, U(0), None, None, None, 0),
    "secret memory": lambda: closes(syscall(447, 0)),
}
for name, action in attempts.items():
    attempt(name, action, no=NO)
