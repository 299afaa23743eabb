//! Arbitrary bytes from a guest, in pieces of arbitrary size: the host decodes or rejects them,
//! buffers at most what it received, and after a fault returns only that fault.

use moothall_core::guest::{FrameReader, GuestMessage};

pub fn guest_frames(data: &[u8]) {
    let Some((&size, bytes)) = data.split_first() else { return };
    let mut reader = FrameReader::default();
    let mut pieces = bytes.chunks(usize::from(size).max(1));
    let fault = loop {
        match reader.next::<GuestMessage>() {
            Ok(Some(_)) => {}
            Ok(None) => match pieces.next() {
                Some(piece) => reader.push(piece),
                None => return,
            },
            Err(fault) => break fault,
        }
    };
    reader.push(bytes);
    assert_eq!(reader.next::<GuestMessage>(), Err(fault));
}
