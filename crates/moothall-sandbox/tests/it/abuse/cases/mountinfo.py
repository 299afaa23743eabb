# What the mounts tell about the host.
import os

from attempt import aims, hole, saw

paths = []
for name in ("mountinfo", "mounts", "mountstats"):
    try:
        with open(f"/proc/self/{name}") as file:
            words = file.read().split()
    except OSError:
        continue
    for path in aims()["paths"]:
        hits = sorted({word for word in words if path in word})
        if hits:
            hole(f"a path of the host in {name}", len(hits))
with open("/proc/self/mounts") as file:
    points = sorted({line.split()[1] for line in file})
saw("mount points", [point for point in points if not point.startswith(("/proc/", "/dev/"))])
