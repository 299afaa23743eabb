//! Tries what must not be possible from inside a sandbox without a root file system, in which only
//! the agent runs. It only opens files and connections and damages nothing that it can reach.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

/// Time limit for the connection to the host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// More user processes than this belong to the host. A sandbox has the agent and, in a container,
/// the runtime's init process.
const MAX_PROCESSES: usize = 10;

/// Prefixes of devices that give access to the host: its disks and its hypervisor.
const HOST_DEVICES: [&str; 4] = ["sd", "vd", "nvme", "kvm"];

/// For each test, whether the sandbox held.
pub(crate) fn held(host_file: &str, port: u16) -> BTreeMap<String, bool> {
    [
        ("no-network", !connects(port)),
        ("no-host-files", !sees_file(host_file)),
        ("own-processes", count_user_processes() < MAX_PROCESSES),
        ("no-devices", !has_host_device()),
    ]
    .map(|(key, held)| (key.to_owned(), held))
    .into()
}

fn connects(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).is_ok()
}

fn sees_file(host_file: &str) -> bool {
    Path::new(host_file).exists() || Path::new(&format!("/proc/1/root{host_file}")).exists()
}

/// Processes with a command line. Kernel threads, which a microVM's own kernel has, have none.
fn count_user_processes() -> usize {
    // A test that cannot run counts as failed.
    let Ok(entries) = fs_err::read_dir("/proc") else { return usize::MAX };
    let is_user_process = |entry: &fs_err::DirEntry| {
        let name = entry.file_name();
        let is_pid = name.to_string_lossy().bytes().all(|byte| byte.is_ascii_digit());
        is_pid && fs_err::read(entry.path().join("cmdline")).is_ok_and(|line| !line.is_empty())
    };
    entries.flatten().filter(is_user_process).count()
}

fn has_host_device() -> bool {
    let Ok(entries) = fs_err::read_dir("/dev") else { return true };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        HOST_DEVICES.iter().any(|prefix| name.to_string_lossy().starts_with(prefix))
    })
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
