//! Kills consultations that run in microVMs, see `chaos.rs`.

use crate::{chaos, real_sandbox};

/// Number of kills and a seed, for a longer run than the default.
const SIZE: &str = "MOOTHALL_TEST_CHAOS_MICROVM";

#[test]
fn consultations_in_microvms_killed_anywhere_end_like_one_that_was_not() {
    let args = [
        "consult",
        "HLXI",
        "--verdict",
        "off",
        "--model",
        "demo",
        "--yes",
        "--isolation",
        "microvm",
    ];
    chaos::check(SIZE, "2 1", &args, real_sandbox::world);
}
