//! The table of hidden characters for the web UI, written by `cargo xtask codegen`.

use std::fmt::Write as _;

use super::{HIDDEN, HiddenKind};

fn class(wanted: HiddenKind) -> String {
    let mut class = String::new();
    for (first, last, _) in HIDDEN.iter().filter(|(.., kind)| *kind == wanted) {
        let _ = write!(class, "\\u{{{:x}}}", u32::from(*first));
        if first != last {
            let _ = write!(class, "-\\u{{{:x}}}", u32::from(*last));
        }
    }
    class
}

#[test]
fn hidden_characters_of_the_web_ui_are_up_to_date() {
    let fresh = format!(
        "// Written by `cargo xtask codegen` from crates/moothall-types/src/text.rs.\n\n\
         /** Control characters but tab and line break, and characters that change the direction of text. */\n\
         export const DECEIVING = /[^\\P{{Cc}}\\t\\n]|[{}]/gu;\n\n\
         /** Characters without ink. */\n\
         export const WITHOUT_INK = /[{}]/gu;\n",
        class(HiddenKind::Direction),
        class(HiddenKind::NoInk),
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/src/gen/text.ts");
    #[expect(clippy::disallowed_methods, reason = "codegen asks for it")]
    let write = std::env::var_os("MOOTHALL_CODEGEN").is_some();
    if write {
        fs_err::write(path, fresh).unwrap();
        return;
    }
    let committed = fs_err::read_to_string(path).unwrap_or_default();
    assert_eq!(committed, fresh, "hint: `cargo xtask codegen` writes web/src/gen/text.ts");
}
