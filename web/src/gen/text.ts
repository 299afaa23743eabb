// Written by `cargo xtask codegen` from crates/moothall-types/src/text.rs.

/** Control characters but tab and line break, and characters that change the direction of text. */
export const DECEIVING = /[^\P{Cc}\t\n]|[\u{61c}\u{200e}-\u{200f}\u{202a}-\u{202e}\u{2066}-\u{2069}]/gu;

/** Characters without ink. */
export const WITHOUT_INK = /[\u{ad}\u{34f}\u{115f}-\u{1160}\u{17b4}-\u{17b5}\u{180b}-\u{180f}\u{200b}-\u{200d}\u{2028}-\u{2029}\u{2060}-\u{2065}\u{206a}-\u{206f}\u{2800}\u{3164}\u{feff}\u{ffa0}\u{fff0}-\u{fffb}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
