# Opens files until it is refused, 2,000 at most, and tries to be allowed more.
import os
import resource

from attempt import attempt, hole, saw

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
except (ValueError, OSError):
    saw("more is refused", True)
else:
    hole("limit of open files", "raised")
count = 0
try:
    while count < 2000:
        os.open("/dev/null", os.O_RDONLY)
        count += 1
except OSError as error:
    saw("refused", error.errno == 24)
    saw("within the limit", count <= 256)
else:
    hole("open files", count)
