#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod claims;
mod formats;
mod report;
mod web_fixtures;
