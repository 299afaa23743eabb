use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn read_all(reader: &mut FrameReader) -> Result<Vec<GuestFrame<Value>>, FrameFault> {
    let mut frames = Vec::new();
    while let Some(frame) = reader.next()? {
        frames.push(frame);
    }
    Ok(frames)
}

#[test]
fn a_partial_frame_is_read_once_its_last_byte_arrives() {
    let mut bytes = Vec::new();
    write_message(&mut bytes, &json!({"a": 1})).unwrap();
    write_data(&mut bytes, GuestStream::Stdout, b"hello");
    let whole = vec![
        GuestFrame::Message(json!({"a": 1})),
        GuestFrame::Data(GuestStream::Stdout, b"hello".to_vec()),
    ];
    for cut in 0..=bytes.len() {
        let mut reader = FrameReader::default();
        reader.push(&bytes[..cut]);
        let mut frames = read_all(&mut reader).unwrap();
        reader.push(&bytes[cut..]);
        frames.extend(read_all(&mut reader).unwrap());
        assert_eq!(frames, whole, "cut at {cut}");
    }
}

#[test]
fn a_length_beyond_the_bound_is_refused_before_its_bytes_arrive() {
    for told in [0, MAX_FRAME_BYTES as u32 + 1, u32::MAX] {
        let mut reader = FrameReader::default();
        reader.push(&told.to_be_bytes());
        assert_eq!(reader.next::<Value>(), Err(FrameFault::Length(told)));
    }
}

#[test]
fn data_has_a_tighter_bound_than_messages() {
    let told = MAX_DATA_BYTES as u32 + 2;
    let mut reader = FrameReader::default();
    reader.push(&told.to_be_bytes());
    reader.push(b"1");
    assert_eq!(reader.next::<Value>(), Err(FrameFault::Length(told)));
}

#[test]
fn nothing_is_read_after_an_invalid_frame() {
    let mut reader = FrameReader::default();
    reader.push(&[0, 0, 0, 1, b'x']);
    assert_eq!(reader.next::<Value>(), Err(FrameFault::Kind(b'x')));
    let mut good = Vec::new();
    write_message(&mut good, &json!(1)).unwrap();
    reader.push(&good);
    assert_eq!(reader.next::<Value>(), Err(FrameFault::Kind(b'x')));
}

#[test]
fn a_message_over_the_frame_limit_is_not_written() {
    let long = "x".repeat(MAX_FRAME_BYTES);
    let mut bytes = Vec::new();
    assert!(matches!(write_message(&mut bytes, &long), Err(FrameFault::Unsendable(_))));
    assert_eq!(bytes, Vec::<u8>::new());
}

proptest! {
    // Long data is slow without optimization, and a few lengths around the limit are enough.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn data_frames_of_any_length_round_trip(
        bytes in prop::collection::vec(any::<u8>(), 0..200_000),
        piece in 1_usize..70_000,
    ) {
        let mut sent = Vec::new();
        write_data(&mut sent, GuestStream::File, &bytes);
        let mut reader = FrameReader::default();
        let mut received = Vec::new();
        for piece in sent.chunks(piece) {
            reader.push(piece);
            for frame in read_all(&mut reader).unwrap() {
                match frame {
                    GuestFrame::Data(GuestStream::File, data) => received.extend(data),
                    other => prop_assert!(false, "{other:?}"),
                }
            }
        }
        prop_assert_eq!(received, bytes);
    }

    #[test]
    fn untrusted_bytes_never_grow_the_frame_buffer_beyond_their_length(
        bytes in prop::collection::vec(any::<u8>(), 0..2_000),
    ) {
        let mut reader = FrameReader::default();
        reader.push(&bytes);
        let _ = read_all(&mut reader);
        prop_assert!(reader.buffer.len() <= bytes.len());
    }
}
