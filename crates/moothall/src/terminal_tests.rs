use std::io::{self, Write};

use super::{fit_lines, painted, wrap, write_all};

#[test]
fn only_the_error_and_hint_labels_are_coloured() {
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
fn a_closed_pipe_is_not_an_output_error_but_a_full_disk_is() {
    assert!(write_all(Closed(io::ErrorKind::BrokenPipe), "text").is_ok());
    let full = write_all(Closed(io::ErrorKind::StorageFull), "text").unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn long_lines_of_a_narrow_terminal_are_broken_between_words() {
    let text =
        "keys: none; set one with `moothall key set`\n  crun cannot start a sandbox here\nshort\n";
    assert_eq!(
        fit_lines(text, 24),
        "keys: none; set one with\n`moothall key set`\n  crun cannot start a\n  sandbox here\nshort\n"
    );
    // Colors need no room.
    let colored = "\u{1b}[33mno sandbox\u{1b}[0m is strong enough";
    assert_eq!(fit_lines(colored, 20), "\u{1b}[33mno sandbox\u{1b}[0m is strong\nenough");
    assert_eq!(
        fit_lines("incomprehensibility is one word", 10),
        "incomprehensibility\nis one\nword"
    );
    // A long word gets less indent.
    assert_eq!(
        fit_lines("          incomprehensibility is long", 24),
        "     incomprehensibility\n          is long"
    );
    assert_eq!(fit_lines("fits", 20), "fits");
}

#[test]
fn text_is_wrapped_between_words_and_keeps_its_line_breaks() {
    assert_eq!(wrap("one two three\n\nfour", 8), ["one two", "three", "", "four"]);
    assert_eq!(wrap("a incomprehensible b", 6), ["a", "incomprehensible", "b"]);
    assert_eq!(wrap("äöü äöü", 7), ["äöü äöü"]);
    assert_eq!(wrap("", 7), Vec::<String>::new());
}
