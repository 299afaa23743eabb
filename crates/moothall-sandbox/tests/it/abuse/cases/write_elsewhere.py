# Makes files where there must be none.
import os

from attempt import attempt, opens

places = ["/", "/bin", "/boot", "/dev", "/etc", "/home", "/inputs", "/lib", "/media", "/mnt", "/opt", "/proc",
          "/root", "/run", "/sbin", "/srv", "/sys", "/usr", "/usr/bin", "/usr/lib", "/usr/local/bin", "/var",
          "/var/lib", "/var/log", "/var/tmp", "/run/lock", "/cgroup", "/modules"]
for place in places:
    attempt(f"a file in {place}", lambda: opens(f"{place}/moothall-abuse", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
for file in ("/etc/passwd", "/etc/shadow", "/etc/resolv.conf", "/usr/bin/python3", "/moothall-guest", "/init"):
    attempt(f"open {file} for writing", lambda: opens(file, os.O_WRONLY), "ETXTBSY")
