//! The abuse suite: programs that try to get out of a sandbox, to use it up or to fool whoever
//! listens, on every engine.
//!
//! Every program is written so that a sandbox that does not hold does no harm: it opens a forbidden
//! file and never writes it, stops a bomb of its own accord after a while, gives arguments that
//! cannot work to calls that could hurt, and connects only to what the test itself listens on.
//!
//! For each case the host is looked at, too: nobody connected, the host's file is what it was and
//! is nowhere in what came back, the number of processes stayed within bounds, everything that was
//! on record for the sandbox is gone, and the next execution works.
//!
//! The cases are a table, so that the page `docs/src/abuse.md` is made from what is tested.

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

/// The cases, by what they abuse.
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
