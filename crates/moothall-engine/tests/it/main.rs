#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod chaos;
mod children;
mod draft_calls;
mod driver;
mod execute;
mod lock;
mod panel;
mod person;
mod real_calculations;
mod real_debate;
mod real_pdf;
mod record;
mod reflexion;
mod rooms;
mod support;
mod waves;
#[allow(dead_code, reason = "the tests of the workspace use all of it")]
#[path = "../../../moothall-workspace/tests/it/world.rs"]
mod world;
