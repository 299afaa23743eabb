#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod formats;
mod formats_edit;
mod formats_panel;
mod report;
mod web_fixtures;
