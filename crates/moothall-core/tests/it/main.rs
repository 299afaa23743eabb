#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod claims;
mod formats;
mod formats_edit;
mod formats_panel;
mod gate_corpus;
mod report;
mod web_fixtures;
