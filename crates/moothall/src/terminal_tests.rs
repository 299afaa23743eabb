use std::io::{self, Write};

use super::{painted, write_all};

#[test]
fn error_and_every_hint_are_painted_and_nothing_else() {
    assert_eq!(
        painted("error: a hint: b\nhint: c\nhint: d\n"),
        "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m a hint: b\n\u{1b}[36mhint:\u{1b}[0m c\n\u{1b}[36mhint:\u{1b}[0m d\n"
    );
    assert_eq!(painted("something else\n"), "something else\n");
}

struct Closed(io::ErrorKind);

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn reader_that_went_away_is_no_error_and_a_full_disk_is_one() {
    assert!(write_all(Closed(io::ErrorKind::BrokenPipe), "text").is_ok());
    let full = write_all(Closed(io::ErrorKind::StorageFull), "text").unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
}
