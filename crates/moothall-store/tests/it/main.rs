#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod contract;
mod crash;
mod model;
mod sqlite;
mod support;
