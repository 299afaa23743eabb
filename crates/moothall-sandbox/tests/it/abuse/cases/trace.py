# Tracing others. Seizing does not stop who is seized, and ends with the one that seized.
import ctypes
import os

from attempt import attempt, syscall

SEIZE = 0x4206
for name, pid in (("pid 1", 1), ("the parent", os.getppid())):
    pid = pid or 1
    attempt(f"trace {name}", lambda: syscall(101, ctypes.c_long(SEIZE), ctypes.c_long(pid), None, None), "ESRCH")
    buffer = ctypes.create_string_buffer(16)
    vector = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 16)
    far = (ctypes.c_void_p * 2)(0x400000, 16)
    attempt(f"read the memory of {name}", lambda: syscall(310, pid, vector, ctypes.c_ulong(1), far, ctypes.c_ulong(1), ctypes.c_ulong(0)), "ESRCH")
    attempt(f"limits of {name}", lambda: syscall(302, pid, 7, None, ctypes.create_string_buffer(16)), "ESRCH")
    attempt(f"compare with {name}", lambda: syscall(312, os.getpid(), pid, 0, ctypes.c_ulong(0), ctypes.c_ulong(0)), "ESRCH")
    attempt(f"take a descriptor of {name}", lambda: syscall(438, os.pidfd_open(pid), 0, 0), "ESRCH", "EINVAL")
    attempt(f"move memory of {name}", lambda: syscall(256, pid, ctypes.c_ulong(1), ctypes.byref(ctypes.c_ulong(1)), ctypes.byref(ctypes.c_ulong(1))), "ESRCH")
