#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod gate_corpus;
