//! Any patch is read or refused, and what is read applies to a file or does not. A patch that
//! applies to the same file twice gives the same result.

use moothall_core::gate::read_patch;

const PART: u8 = 0x1e;

pub fn git_patches(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == PART);
    let (base, patch) = (parts.next().unwrap_or(b""), parts.next().unwrap_or(b""));
    let Ok(files) = read_patch(patch) else { return };
    for file in &files {
        assert_eq!(file.apply(Some(base)), file.apply(Some(base)));
        if file.new_path.is_none() {
            assert!(file.apply(Some(base)).map_or(true, |new| new.is_empty()));
        }
        let _ = file.apply(None);
    }
}
