# A folder with files that becomes a link before the end, while a daemon goes on swapping.
import os
import time

os.makedirs("out/folder")
with open("out/folder/file", "w") as file:
    file.write("first")
os.symlink("/etc", "link")
if os.fork() == 0:
    os.setsid()
    for _ in range(2000):
        try:
            os.rename("out/folder", "folder")
            os.rename("link", "out/folder")
            os.rename("out/folder", "link")
            os.rename("folder", "out/folder")
        except OSError:
            pass
        time.sleep(0.001)
    os._exit(0)
time.sleep(0.1)
os._exit(0)
