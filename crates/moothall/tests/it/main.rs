//! The program as a person or a script meets it: the real executable in a folder of its own, with
//! an environment of its own.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod ask;
mod chaos;
mod committee;
mod config;
mod consult;
mod evidence;
mod failures;
mod fake;
mod help;
mod image;
mod interrupted;
mod json;
mod kept;
mod models;
mod real_chaos;
mod real_exec;
mod real_sandbox;
mod runs;
mod scene;
mod schema;
mod secrecy;
mod sources;
mod terminal;
mod trust;
mod verify;
mod world;
