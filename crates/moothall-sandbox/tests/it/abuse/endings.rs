//! Ends that look like something else and must be distinguished.

use super::case::{Case, End, case};

const CODE: &str = include_str!("cases/exit_code.py");
const SIGNAL: &str = include_str!("cases/end_by_signal.py");

pub(crate) const CASES: &[Case] = &[
    case("exit code 124", CODE, "an exit code, not a time limit")
        .args(&["124"])
        .ends(&[End::Code(124)]),
    case("exit code 137", CODE, "an exit code, not a lack of memory")
        .args(&["137"])
        .ends(&[End::Code(137)]),
    case("exit code 255", CODE, "an exit code").args(&["255"]).ends(&[End::Code(255)]),
    case("SIGKILL to itself", SIGNAL, "a signal, not a lack of memory")
        .args(&["9"])
        .ends(&[End::Signal(9)]),
    case("SIGTERM to itself", SIGNAL, "a signal").args(&["15"]).ends(&[End::Signal(15)]),
    case("SIGABRT", SIGNAL, "a signal; no core is written").args(&["6"]).ends(&[End::Signal(6)]),
    case("segmentation fault", include_str!("cases/segfault.py"), "a signal; no core is written")
        .ends(&[End::Signal(11)]),
];
