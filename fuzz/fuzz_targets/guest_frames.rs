//! Arbitrary bytes as what a guest says, in arbitrary pieces: the host's end decodes or refuses them,
//! holds no more than it was given, and after a fault says nothing but that fault.

#![no_main]

use libfuzzer_sys::fuzz_target;
use moothall_core::guest::{FrameReader, FromGuest};

fuzz_target!(|data: &[u8]| {
    let Some((&size, bytes)) = data.split_first() else { return };
    let mut reader = FrameReader::default();
    let mut pieces = bytes.chunks(usize::from(size).max(1));
    let fault = loop {
        match reader.next::<FromGuest>() {
            Ok(Some(_)) => {}
            Ok(None) => match pieces.next() {
                Some(piece) => reader.push(piece),
                None => return,
            },
            Err(fault) => break fault,
        }
    };
    reader.push(bytes);
    assert_eq!(reader.next::<FromGuest>(), Err(fault));
});
