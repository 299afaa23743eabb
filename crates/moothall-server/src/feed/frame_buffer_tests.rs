use super::*;

fn held(numbers: impl IntoIterator<Item = u64>, from: u64) -> FrameBuffer {
    let mut tail = FrameBuffer::after(from);
    numbers.into_iter().for_each(|seq| tail.push(seq, Bytes::from(format!("{seq},"))));
    tail
}

fn text(found: Option<(u64, Bytes)>) -> Option<(u64, String)> {
    found.map(|(last, bytes)| (last, String::from_utf8(bytes.to_vec()).unwrap()))
}

#[test]
fn frames_after_a_cursor_are_returned_in_order() {
    let tail = held(4..=6, 3);
    assert_eq!(text(tail.after_cursor(3, 10)), Some((6, "4,5,6,".to_owned())));
    assert_eq!(text(tail.after_cursor(4, 1)), Some((5, "5,".to_owned())));
    assert_eq!(text(tail.after_cursor(6, 10)), None);
    assert_eq!(text(tail.after_cursor(7, 10)), None);
}

#[test]
fn a_cursor_before_the_buffered_frames_is_not_served_from_memory() {
    assert_eq!(text(held(4..=6, 3).after_cursor(2, 10)), None);
}

#[test]
fn the_oldest_buffered_frames_are_dropped() {
    let many = MAX_FRAMES as u64 + 10;
    let tail = held(1..=many, 0);
    assert_eq!(tail.after_cursor(9, 1), None);
    assert_eq!(text(tail.after_cursor(10, 1)), Some((11, "11,".to_owned())));
    let mut large = FrameBuffer::after(0);
    (1..=3).for_each(|seq| large.push(seq, Bytes::from(vec![b'x'; MAX_BYTES / 2])));
    assert_eq!(large.after_cursor(0, 1), None);
    assert_eq!(large.after_cursor(1, 1).map(|(last, _)| last), Some(2));
}
