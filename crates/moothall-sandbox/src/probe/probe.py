# Tries what a program in a sandbox must not be able to do, and says as JSON whether it was stopped.
# Arguments: a file of the host, a port on which the host listens.
import json
import os
import socket
import sys

host_file, port = sys.argv[1], int(sys.argv[2])
held = {}


def stopped(rule, attempt):
    try:
        held[rule] = not attempt()
    except OSError:
        held[rule] = True


def can_write(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    return True


def connects(address):
    with socket.create_connection(address, timeout=2):
        return True


def status(field):
    with open("/proc/self/status") as lines:
        return next((line.split()[1] for line in lines if line.startswith(field + ":")), None)


stopped("root-read-only", lambda: can_write("/moothall-probe") or can_write("/usr/moothall-probe"))
stopped("inputs-read-only", lambda: can_write("/inputs/moothall-probe"))
stopped("no-network", lambda: connects(("127.0.0.1", port)))
stopped("no-host-files", lambda: os.path.exists(host_file) or os.path.exists("/proc/1/root" + host_file))
held["not-root"] = os.getuid() != 0 and os.geteuid() != 0
held["no-capabilities"] = all(int(status(name) or "0", 16) == 0 for name in ("CapEff", "CapPrm", "CapBnd"))
# gVisor does not show the flag; there it is asked of the kernel by the only other way there is.
flag = status("NoNewPrivs")
if flag is None:
    import ctypes

    flag = str(ctypes.CDLL(None).prctl(39, 0, 0, 0, 0))
held["no-new-privileges"] = flag == "1"
visible = [int(name) for name in os.listdir("/proc") if name.isdigit()]
held["own-processes"] = len(visible) < 10
devices = set(os.listdir("/dev"))
held["no-devices"] = not any(name.startswith(("sd", "vd", "nvme", "mem", "kmsg", "kvm", "tty0")) for name in devices)
print(json.dumps(held))
