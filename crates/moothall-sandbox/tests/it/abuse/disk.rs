//! Too many bytes, too many files, and files in the wrong place.

use moothall_sandbox::EngineName::Runsc;

use super::case::{Case, Note, Reach, Seen, case};

fn stopped(seen: &Seen<'_>) -> Result<(), String> {
    seen.saw("refused")?;
    seen.saw("within the limit").map(|_| ())
}

const FILL: &str = include_str!("cases/fill.py");

pub(crate) const CASES: &[Case] = &[
    case("fill /workspace", FILL, "refused at 64 MiB")
        .args(&["/workspace", "67108864"])
        .check(stopped),
    case("fill /tmp", FILL, "refused at 64 MiB").args(&["/tmp", "67108864"]).check(stopped),
    case("fill /dev/shm", FILL, "refused at 64 MiB or before")
        .args(&["/dev/shm", "67108864"])
        .check(stopped),
    case("too many files", include_str!("cases/inodes.py"), "refused at 16,384 files or before")
        .notes(&[Note {
            on: Runsc,
            attempts: &["files"],
            reach: Reach::Inside,
            words: "gVisor counts bytes and not files; what 20,000 of them take is memory of the \
                    sandbox, which is limited",
        }])
        .check(|seen| match seen.engine {
            Runsc => Ok(()),
            _ => seen.saw("refused").map(|_| ()),
        }),
    case(
        "huge sparse files",
        include_str!("cases/sparse.py"),
        "refused beyond the limit for a file; a sparse file that fits is too large to come back",
    )
    .check(|seen| {
        seen.tried(2)?;
        let empty: &[u8] = b"";
        seen.brought(
            &[("one byte more", empty), ("small", b"small"), ("terabyte", empty)],
            &["sparse: larger than 16777216 bytes"],
        )
    }),
    case(
        "file beyond the limit for a file",
        include_str!("cases/large_file.py"),
        "refused at the limit",
    )
    .limits(|limits| limits.file_bytes = 8 << 20)
    .check(|seen| match seen.saw("bytes")? {
        "8388608" => seen.saw("refused").map(|_| ()),
        other => Err(format!("{other} bytes were written")),
    }),
    case(
        "too many open files",
        include_str!("cases/open_files.py"),
        "refused at 256, and the limit cannot be raised",
    )
    .check(|seen| seen.saw("more is refused").and_then(|_| stopped(seen))),
    case(
        "files outside /workspace and /tmp",
        include_str!("cases/write_elsewhere.py"),
        "refused everywhere",
    )
    .check(|seen| seen.tried(34)),
];
