use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use super::{blank, copy_with_holes, read_bounded, reopened, seal, sealed};

#[test]
fn a_copy_has_the_same_bytes_and_the_same_holes() {
    let from = File::from(blank("from", 64 << 20).unwrap());
    from.write_all_at(b"near the start", 5_000).unwrap();
    from.write_all_at(b"in the middle", 20 << 20).unwrap();
    from.write_all_at(b"the last bytes", (64 << 20) - 14).unwrap();
    let disk = tempfile::tempfile().unwrap();
    copy_with_holes(&from, &disk, 64 << 20).unwrap();
    let back = File::from(blank("back", 0).unwrap());
    copy_with_holes(&disk, &back, 64 << 20).unwrap();
    for copy in [&disk, &back] {
        let mut texts = Vec::new();
        for (length, at) in [(14, 5_000), (13, 20 << 20), (14, (64 << 20) - 14)] {
            let mut bytes = vec![0; length];
            copy.read_exact_at(&mut bytes, at).unwrap();
            texts.push(String::from_utf8(bytes).unwrap());
        }
        assert_eq!(texts, ["near the start", "in the middle", "the last bytes"]);
        assert_eq!(copy.metadata().unwrap().len(), 64 << 20);
        assert!(copy.metadata().unwrap().blocks() * 512 < 1 << 20, "the holes are holes");
    }
}

#[test]
fn a_sparse_copy_of_a_truncated_file_is_padded_to_its_length() {
    let from = tempfile::tempfile().unwrap();
    from.write_all_at(b"x", 10).unwrap();
    let to = File::from(blank("to", 0).unwrap());
    copy_with_holes(&from, &to, 1 << 20).unwrap();
    assert_eq!(to.metadata().unwrap().len(), 1 << 20);
}

#[test]
fn a_sealed_memory_file_cannot_be_changed() {
    let file = sealed("sealed", &[b"one ", b"two"]).unwrap();
    let mut copy = File::from(reopened(&file).unwrap());
    let mut text = String::new();
    copy.read_to_string(&mut text).unwrap();
    assert_eq!(text, "one two");
    let mut file = File::from(file);
    assert_eq!(file.stream_position().unwrap(), 7, "the copy has a position of its own");
    assert!(file.write_all(b"three").is_err());
    assert!(file.set_len(1).is_err());
    assert!(seal(&file.into()).is_err(), "and the seals stay too");
}

#[test]
fn a_file_that_is_larger_than_expected_is_refused() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"12345").unwrap();
    assert_eq!(read_bounded(file.path(), 5).unwrap(), b"12345");
    assert!(read_bounded(file.path(), 4).is_err());
}
