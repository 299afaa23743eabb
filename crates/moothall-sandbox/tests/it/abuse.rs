//! The abuse suite: programs that try to escape from a sandbox, exhaust it or deceive the host, on
//! every engine.
//!
//! Every program is harmless even if isolation fails: it opens a forbidden file but never writes
//! it, stops a bomb after a while, passes invalid arguments to dangerous system calls, and connects
//! only to sockets of the test itself.
//!
//! Each case also checks the host: no connection was made, the host's file is unchanged and not
//! part of any output, the number of processes stayed within bounds, everything on record for the
//! sandbox is gone, and the next execution works.
//!
//! The cases are a table, so that the page `docs/src/operations/sandbox-tests.md` is generated from
//! what is tested.

mod bring_back;
mod case;
mod disk;
mod endings;
mod kernel;
mod memory;
mod network;
mod output;
mod processes;
mod real_abuse;
mod sight;
mod table;
mod witness;

use self::case::Case;

/// The cases, grouped by what they abuse.
const GROUPS: [(&str, &[Case]); 9] = [
    ("Processes and signals", processes::CASES),
    ("Memory and time", memory::CASES),
    ("Output and input", output::CASES),
    ("Disk", disk::CASES),
    ("Files that are brought back", bring_back::CASES),
    ("The kernel", kernel::CASES),
    ("Network", network::CASES),
    ("What can be seen", sight::CASES),
    ("Ends that look like something else", endings::CASES),
];
