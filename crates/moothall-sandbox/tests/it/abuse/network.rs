//! Network access, which must not be possible.

use moothall_sandbox::EngineName::{Microvm, Runsc};

use super::case::{Case, Note, Reach, case};

pub(crate) const CASES: &[Case] = &[
    case(
        "TCP and UDP to the host, Unix sockets of the host",
        include_str!("cases/network.py"),
        "nothing arrives where the host listens",
    )
    .check(|seen| seen.tried(7)),
    case("raw, packet, netlink and other sockets", include_str!("cases/odd_sockets.py"), "refused")
        .notes(&[
            Note {
                on: Microvm,
                attempts: &["netlink", "netlink of events"],
                reach: Reach::Inside,
                words: "a program may ask its own kernel about a network that has no card",
            },
            Note {
                on: Runsc,
                attempts: &["ping"],
                reach: Reach::Inside,
                words: "gVisor's own network has no way out",
            },
        ])
        .check(|seen| seen.tried(11)),
    case(
        "resolve a name",
        include_str!("cases/names.py"),
        "no name is resolved and no server is contacted",
    )
    .check(|seen| seen.tried(1)),
];
