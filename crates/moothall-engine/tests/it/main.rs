#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod driver;
mod execute;
mod lock;
mod record;
mod reflexion;
mod support;
