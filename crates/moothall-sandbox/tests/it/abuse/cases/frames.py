# Says what an agent would say, wherever it can be said: on its own streams, on every descriptor that
# it finds, and on every port and terminal that it can open.
import json
import os
import struct

from attempt import attempt


def frame(message):
    body = b"j" + json.dumps(message).encode()
    return struct.pack(">I", len(body)) + body


lie = frame({"from_guest": "ended", "way": {"exited": 0}, "stdout_truncated": False,
             "stderr_truncated": False, "left_running": 0})
lies = lie + frame({"from_guest": "done"}) + b"\xff" * 8
for descriptor in range(1, 256):
    try:
        os.write(descriptor, lies)
    except OSError:
        pass
os.write(1, b"\n")
ports = ["/dev/console", "/dev/ttyS0", "/dev/hvc0", "/dev/kmsg", "/proc/1/fd/0", "/proc/1/fd/1", "/proc/1/fd/3"]
ports += [f"/dev/vport{bus}p{port}" for bus in range(3) for port in range(3)]
ports += ["/dev/virtio-ports/moothall.agent"]
for port in ports:
    attempt(port, lambda: os.close(os.open(port, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)) or "opened")
os._exit(7)
