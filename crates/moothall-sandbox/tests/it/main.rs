#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod abuse;
#[path = "../../../moothall-guest/tests/it/debate_input.rs"]
mod debate_input;
mod real_contract;
mod real_images;
mod real_leak;
mod real_microvm;
mod real_oci;
mod support;
