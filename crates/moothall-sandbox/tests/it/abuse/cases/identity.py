# What tells which machine this is: names, ids, other processes, control groups.
import os
import socket

from attempt import aims, hole, saw

saw("host name", socket.gethostname() == "sandbox")
for path in ("/etc/machine-id", "/var/lib/dbus/machine-id", "/sys/class/dmi/id/product_uuid", "/sys/class/dmi/id/board_serial"):
    try:
        with open(path) as file:
            if file.read().strip():
                hole(path, "can be read")
    except OSError:
        pass
for path in ("/etc/hostname", "/etc/hosts", "/proc/sys/kernel/hostname"):
    try:
        with open(path) as file:
            if aims()["hostname"] in set(file.read().split()) - {"localhost", "sandbox"}:
                hole(path, "names the host")
    except OSError:
        pass
with open("/proc/self/cgroup") as file:
    for line in file:
        if "moothall" in line:
            hole("/proc/self/cgroup", line.strip())
