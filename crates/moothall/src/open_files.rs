//! Raises the limit on open files, which also limits connections.

use moothall_server::ConnectionLimits;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit of this process to the maximum, and returns the connection limits that fit
/// below it.
pub(crate) fn connection_limits() -> ConnectionLimits {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    // `None` means unlimited.
    ConnectionLimits::for_open_files(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))
}
