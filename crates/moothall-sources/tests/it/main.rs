#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod edgar;
mod edgar_server;
mod gather;
mod sources;
#[allow(dead_code, reason = "the tests of the workspace use all of it")]
#[path = "../../../moothall-workspace/tests/it/world.rs"]
mod world;
