//! Drives the real binary over pipes, as a container runtime would.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

mod debate_input;
mod frames;
mod guest;
mod parked;
mod programs;
mod transfer;
mod workflows;
