use std::io::{self, Write};

use super::{harmless, harmless_line, painted, write_all};

#[test]
fn escape_sequences_of_a_model_lose_their_power_and_text_stays() {
    let said = "a\tb\nc\u{1b}[2J \u{9b}1m \u{7}\r\u{8}\u{7f}ä…";
    assert_eq!(harmless(said), "a\tb\nc\u{fffd}[2J \u{fffd}1m \u{fffd}\u{fffd}\u{fffd}\u{fffd}ä…");
}

#[test]
fn text_inside_a_line_cannot_begin_another() {
    assert_eq!(
        harmless_line("m\nerror: x\r\u{85}\ty"),
        "m\u{fffd}error: x\u{fffd}\u{fffd}\u{fffd}y"
    );
}

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
