# A pipe, a socket, a folder that nobody may enter, a file that nobody may read, and devices if they
# can be made. Nobody may wait for any of them.
import os
import socket
import stat

from attempt import attempt

os.makedirs("out/closed")
os.mkfifo("out/pipe")
socket.socket(socket.AF_UNIX).bind("out/socket")
with open("out/closed/file", "w") as file:
    file.write("inside")
with open("out/secret", "w") as file:
    file.write("secret")
os.chmod("out/secret", 0)
os.chmod("out/closed", 0)
for name, kind, number in (("null", stat.S_IFCHR, os.makedev(1, 3)), ("loop", stat.S_IFBLK, os.makedev(7, 0))):
    attempt(f"the device {name}", lambda: os.mknod(f"out/{name}", kind | 0o600, number) or "made")
with open("out/plain", "w") as file:
    file.write("plain")
