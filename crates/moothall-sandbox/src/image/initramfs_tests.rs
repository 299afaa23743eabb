use std::sync::Arc;

use moothall_core::Sha256Hex;

use super::*;

#[test]
fn the_initramfs_archive_has_the_exact_format_of_the_kernel() {
    let entries = [
        ArchiveEntry::Folder("dev"),
        ArchiveEntry::File { path: "init", mode: 0o755, bytes: b"hello" },
    ];
    // Magic, then inode, mode, owner, group, links, time, size, four device numbers, length of the
    // name, checksum; every part is padded to a multiple of four.
    let header = |inode: u32, mode: u32, size: u32, name: u32| {
        format!(
            "070701{inode:08x}{mode:08x}{:08x}{:08x}{:08x}{:08x}{size:08x}{:08x}{:08x}{:08x}{:08x}{name:08x}{:08x}",
            0, 0, 1, 0, 0, 0, 0, 0, 0
        )
    };
    let mut expected = String::new();
    expected.push_str(&header(1, 0o040_755, 0, 4));
    expected.push_str("dev\0\0\0");
    expected.push_str(&header(2, 0o100_755, 5, 5));
    expected.push_str("init\0\0hello\0\0\0");
    expected.push_str(&header(0, 0, 0, 11));
    expected.push_str("TRAILER!!!\0\0\0\0");
    assert_eq!(String::from_utf8(archive(&entries).unwrap()).unwrap(), expected);
}

#[test]
fn the_agent_archive_can_be_appended_to_the_initramfs() {
    let bytes: Arc<[u8]> = Arc::from(&b"agent!!"[..]);
    let sha256 = Sha256Hex::of(&bytes);
    let guest = GuestBinary { path: "/nowhere".into(), bytes, sha256 };
    let first = archive(&[ArchiveEntry::Folder("dev")]).unwrap();
    let second = init_archive(&guest).unwrap();
    assert_eq!((first.len() % 4, second.len() % 4), (0, 0));

    let whole = [first, second].concat();
    let mut rest = whole.as_slice();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let reader = cpio::NewcReader::new(rest).unwrap();
        let entry = reader.entry();
        found.push((entry.name().to_owned(), entry.mode(), entry.file_size()));
        rest = reader.finish().unwrap();
    }
    let end = ("TRAILER!!!".to_owned(), 0, 0);
    let expected =
        vec![("dev".to_owned(), 0o040_755, 0), end.clone(), ("init".to_owned(), 0o100_755, 7), end];
    assert_eq!(found, expected);
}
