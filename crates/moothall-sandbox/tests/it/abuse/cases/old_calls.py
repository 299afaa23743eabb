# Calls of the 32-bit kind, which a filter for 64 bits does not see: `int 0x80` in machine code, in a
# child. Its getpid answers where they are allowed; the child is killed or told "no" where not.
import ctypes
import mmap
import os
import signal

from attempt import held, hole

child = os.fork()
if child == 0:
    # mov eax, 20; int 0x80; ret
    code = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    os._exit(1 if call() == os.getpid() else 0)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
if status == 1:
    hole("32-bit calls", "answered")
else:
    held("32-bit calls", signal.Signals(-status).name if status < 0 else "refused")
