//! Tests the claim checker on real companies: gold sentences, mutated numbers, moves with planted
//! errors.
#![allow(clippy::disallowed_methods, reason = "tests read the recorded filings")]
#![allow(clippy::print_stdout, reason = "tests print what they measured")]

mod company;
mod gold;
mod mutants;
mod planted;
