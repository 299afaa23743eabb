# 5,000 files.
import os

os.makedirs("out", exist_ok=True)
for number in range(5000):
    os.close(os.open(f"out/{number:04}", os.O_WRONLY | os.O_CREAT))
