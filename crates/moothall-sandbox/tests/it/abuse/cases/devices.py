# What is in /dev, and devices that could be made.
import os
import stat

from attempt import attempt, held, hole, opens

USUAL = {"null", "zero", "full", "random", "urandom", "fd", "stdin", "stdout", "stderr", "shm", "pts", "ptmx", "tty",
         "mqueue", "core", "console"}
for name in sorted(set(os.listdir("/dev")) - USUAL):
    hole(f"/dev/{name}", "is there")
for name in ("mem", "kmem", "port", "kmsg", "kvm", "fuse", "loop-control", "loop0", "sda", "vda", "vdb", "nvme0n1", "dm-0",
             "net/tun", "vhost-net", "vhost-vsock", "vsock", "userfaultfd", "cpu/0/msr", "hpet", "rtc0", "nvram", "snapshot",
             "mapper/control", "input/event0", "fb0", "dri/card0", "tty0", "tty1", "ttyS0", "hvc0", "autofs", "uinput", "console"):
    attempt(f"open /dev/{name}", lambda: opens(f"/dev/{name}", os.O_RDONLY))
for name, kind, number in (("memory", stat.S_IFCHR, os.makedev(1, 1)), ("null", stat.S_IFCHR, os.makedev(1, 3)),
                           ("disk", stat.S_IFBLK, os.makedev(254, 0))):
    for place in ("/workspace", "/tmp", "/dev/shm"):
        attempt(f"make the device {name} in {place}", lambda: os.mknod(f"{place}/{name}", kind | 0o600, number) or "made")
for name in ("memory", "disk"):
    attempt(f"open the device {name} that was made", lambda: opens(f"/tmp/{name}", os.O_RDONLY))
