# Leaves a daemon behind that has left the session, holds the pipes and writes on. Nothing of what it
# writes after the end of the program may arrive, and nobody may wait for it.
import os
import time

os.makedirs("out", exist_ok=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open("out/growing", "w", buffering=1) as file:
            for _ in range(6000):
                file.write("x" * 100 + "\n")
                print("still here", flush=True)
                time.sleep(0.01)
    os._exit(0)
os.wait()
while not os.path.exists("out/growing"):
    time.sleep(0.01)
with open("out/kept", "w") as file:
    file.write("kept")
print("the program is done", flush=True)
os._exit(0)
