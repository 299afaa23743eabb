# Signals to whatever is not its own. The signal 0 asks whether one would be delivered and delivers
# none; only where that is refused, a real one follows.
import os
import signal

from attempt import attempt, held, hole

for name, pid in (("pid 1", 1), ("the parent", os.getppid())):
    attempt(f"signal to {name}", lambda: os.kill(pid, 0) or "allowed", "ESRCH")

reached = []
for pid in range(1, 1024):
    try:
        os.kill(pid, 0)
    except OSError:
        continue
    if pid != os.getpid():
        reached.append(pid)
if reached:
    hole("signals to others", reached)
elif os.getuid() != 1000:
    hole("signals to others", "not sent: this is not the user that a program has")
else:
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):
        for name, pid in (("pid 1", 1), ("the parent", os.getppid())):
            attempt(f"{number.name} to {name}", lambda: os.kill(pid, number) or "sent", "ESRCH")
    # Everybody but the sender. What the kernel answers says nothing about who was reached; whether
    # the end of this program is told at all does.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        try:
            os.kill(-1, number)
        except OSError:
            pass
    held("signals to everybody", "nobody is there")
