# Settings and switches of the kernel. Each is opened for writing and closed again; nothing is written.
import os

from attempt import attempt, lists, opens, refused

WRITE = os.O_WRONLY
for path in ("/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
             "/proc/sys/kernel/hotplug", "/proc/sys/vm/drop_caches", "/proc/sys/fs/binfmt_misc/register",
             "/proc/sys/kernel/ns_last_pid", "/proc/sys/net/ipv4/ip_forward", "/proc/mtrr", "/proc/acpi/wakeup",
             "/proc/irq/default_smp_affinity", "/proc/timer_list", "/sys/kernel/mm/ksm/run",
             "/sys/kernel/uevent_helper", "/sys/power/state", "/sys/fs/cgroup/cgroup.procs",
             "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/module/kernel/parameters/panic"):
    attempt(f"{path} for writing", lambda: opens(path, WRITE))
for path in ("/proc/kcore", "/proc/kmsg", "/proc/kallsyms", "/proc/keys", "/proc/slabinfo", "/proc/vmallocinfo",
             "/proc/kpagecount", "/proc/vmcore", "/sys/kernel/debug", "/sys/kernel/tracing", "/sys/firmware/dmi/tables/DMI",
             "/boot", "/lib/modules"):
    def reads():
        if os.path.isdir(path):
            return lists(path)
        with open(path, "rb", buffering=0) as file:
            words = file.read(64)
        # Addresses that are all zero, and nothing at all, tell nothing.
        if not words.strip(b"0 \n") or words.startswith(b"0000000000000000"):
            refused()
        return words
    attempt(f"{path} for reading", reads)
