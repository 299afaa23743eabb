//! What a program can see of the host.

use moothall_sandbox::EngineName::Runc;

use super::case::{Case, Note, Reach, case};

pub(crate) const CASES: &[Case] = &[
    case("open descriptors", include_str!("cases/descriptors.py"), "three pipes and nothing else")
        .check(|seen| match seen.saw("open")? {
            "[(0, 'pipe'), (1, 'pipe'), (2, 'pipe')]" => Ok(()),
            other => Err(format!("open: {other}")),
        }),
    case(
        "environment",
        include_str!("cases/environment.py"),
        "the usual variables and none of the host's",
    )
    .check(|seen| {
        let usual = "['HOME', 'LANG', 'MPLBACKEND', 'MPLCONFIGDIR', 'PATH', \
                     'PYTHONDONTWRITEBYTECODE', 'TMPDIR']";
        match seen.saw("variables")? {
            variables if variables == usual => Ok(()),
            other => Err(format!("variables: {other}")),
        }
    }),
    case("a file of the host", include_str!("cases/host_files.py"), "not there by any way")
        .check(|seen| seen.tried(16)),
    case("paths of the host in the list of mounts", include_str!("cases/mountinfo.py"), "none")
        .notes(&[Note {
            on: Runc,
            attempts: &["a path of the host in mountinfo"],
            reach: Reach::Host,
            words: "a kernel that is shared names the folder from which something is mounted: \
                    where the image and the agent are on the host shows, what else is there does \
                    not",
        }])
        .check(|seen| seen.saw("mount points").map(|_| ())),
    case(
        "name and ids of the host",
        include_str!("cases/identity.py"),
        "none; the name is `sandbox`",
    )
    .check(|seen| seen.saw("host name").map(|_| ())),
];
