//! Entries that a program leaves in the output folder.

use moothall_sandbox::EngineName::Runsc;

use super::case::{Case, Note, Reach, case};

pub(crate) const CASES: &[Case] = &[
    case("links to other places", include_str!("cases/links_out.py"), "named and not followed")
        .check(|seen| {
            seen.brought(
                &[("plain", b"plain")],
                &[
                    "`dangling` is a link",
                    "`environ` is a link",
                    "`host` is a link",
                    "`inner/up` is a link",
                    "`itself` is a link",
                    "`own-environ` is a link",
                    "`passwd` is a link",
                    "`root` is a link",
                    "`up` is a link",
                ],
            )
        }),
    case("the folder is a link", include_str!("cases/out_is_a_link.py"), "nothing comes back")
        .check(|seen| seen.brought(&[], &["`out` is not a directory"])),
    case("the folder is a file", include_str!("cases/out_is_a_file.py"), "nothing comes back")
        .check(|seen| seen.brought(&[], &["`out` is not a directory"])),
    case(
        "a folder that is swapped for a link all the time",
        include_str!("cases/swapped_folder.py"),
        "the swapping process is stopped first; no file from outside is returned",
    )
    .check(|seen| {
        let strange = seen
            .files
            .iter()
            .find(|(path, bytes)| path.as_str() != "folder/file" || bytes.as_slice() != b"first");
        match strange {
            None => Ok(()),
            Some((path, bytes)) => Err(format!("{path} came back with {} bytes", bytes.len())),
        }
    }),
    case(
        "hard links",
        include_str!("cases/hard_links.py"),
        "none to a file of others; several names for one file come back as files",
    )
    .check(|seen| {
        seen.tried(5)?;
        let file: &[u8] = b"one file";
        seen.brought(&[("a", file), ("b", file), ("c", file), ("d", file)], &[])
    }),
    case(
        "pipe, socket, device, closed folder",
        include_str!("cases/not_files.py"),
        "reported; the host does not wait for a pipe; removed permissions do not hide files",
    )
    .check(|seen| {
        seen.tried(2)?;
        let devices: &[&str] = match seen.engine {
            Runsc => &["`loop` is a device", "`null` is a device"],
            _ => &[],
        };
        seen.brought(
            &[("closed/file", b"inside"), ("plain", b"plain"), ("secret", b"secret")],
            &[devices, &["`pipe` is a pipe", "`socket` is a socket"]].concat(),
        )
    })
    .notes(&[Note {
        on: Runsc,
        attempts: &["the device null", "the device loop"],
        reach: Reach::Inside,
        words: "gVisor lets everybody make names of devices; the agent does not open them",
    }]),
    case(
        "folders 300 deep",
        include_str!("cases/deep_folders.py"),
        "15 levels come back, the rest is named",
    )
    .check(|seen| {
        let deepest = seen.files.keys().map(|path| path.parts().count()).max();
        match (seen.files.len(), deepest, seen.execution.left_behind.as_slice()) {
            (15, Some(15), [_, _, _]) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }),
    case(
        "names that are not names",
        include_str!("cases/odd_names.py"),
        "plain names come back; others are named in harmless words",
    )
    .check(|seen| {
        let names: Vec<&str> = seen.files.keys().map(|path| path.as_str()).collect();
        let long = "n".repeat(255);
        let plain =
            [" ", "-rf", "...", "..hidden/...", "C:", "na\u{308}me", &long, "\u{202e}gpj.exe"];
        if names != plain {
            return Err(format!("{names:?} came back"));
        }
        let left = &seen.execution.left_behind;
        match left.len() == 7 && !left.iter().any(|words| words.contains(char::is_control)) {
            true => Ok(()),
            false => Err(format!("not collected: {left:#?}")),
        }
    }),
    case("5,000 files", include_str!("cases/many_files.py"), "200 come back, the rest is counted")
        .check(|seen| match (seen.files.len(), seen.execution.left_behind.as_slice()) {
            (200, [.., last]) if last == "4700 more" => Ok(()),
            (files, left) => Err(format!("{files} files; not collected: {:?}", left.last())),
        }),
    case(
        "a file that is too large to come back",
        include_str!("cases/large_outputs.py"),
        "named; the others come back",
    )
    .check(|seen| {
        let sizes: Vec<_> = seen.files.iter().map(|(p, b)| (p.as_str(), b.len() >> 20)).collect();
        match sizes == [("b", 2), ("c", 1)]
            && seen.execution.left_behind == ["a: larger than 16777216 bytes"]
        {
            true => Ok(()),
            false => Err(format!("{sizes:?}; {:?}", seen.execution.left_behind)),
        }
    }),
];
