# Twelve children, each with less than the limit, and together with much more.
import os
import time

for _ in range(12):
    if os.fork() == 0:
        kept = bytearray(b"x") * (100 << 20)
        time.sleep(60)
        os._exit(0)
codes = []
for _ in range(12):
    codes.append(os.waitstatus_to_exitcode(os.wait()[1]))
    if codes[-1] == -9:
        break
print("saw a child was killed:", -9 in codes, flush=True)
os._exit(9)
