use super::*;
use crate::program::support::{ended, execution};

#[track_caller]
fn check(
    a: (&str, ExecutionExit, &str, &str),
    b: (&str, ExecutionExit, &str, &str),
    expected: bool,
) {
    let failure = |(code, exit, stdout, stderr): (&str, ExecutionExit, &str, &str)| {
        AttemptFailure::of(code, &execution(exit, stdout, stderr))
    };
    assert_eq!(failure(a).is_repeated_by(&failure(b)), expected);
}

#[test]
fn the_same_program_or_error_counts_as_a_repeated_failure() {
    let error = "File \"main.py\", line 3\n  open('a')\n  ^^^^\nKeyError: <0x7f12> 'a'";
    let again = "File \"main.py\", line 17\n    open('a')\n    ~~^\nKeyError: <0x9abc> 'a'";
    check(("a = 1", ended(1), "", error), ("b = 2", ended(1), "x", again), true);
    check(("a = 1", ended(1), "", "one"), ("a=1 # again", ExecutionExit::TimedOut, "", ""), true);
    check(("a", ended(0), "12\n", ""), ("b", ended(0), "12", "warning"), true);
    assert!(AttemptFailure::NoProgram.is_repeated_by(&AttemptFailure::NoProgram));
}

#[test]
fn a_different_error_output_or_limit_is_not_a_repeated_failure() {
    check(("a", ended(1), "", "KeyError: 'a'"), ("b", ended(1), "", "KeyError: 'b'"), false);
    check(("a", ended(1), "", "KeyError"), ("b", ended(2), "", "KeyError"), false);
    check(("a", ended(0), "12", ""), ("b", ended(0), "13", ""), false);
    check(("a", ExecutionExit::TimedOut, "", ""), ("b", ExecutionExit::TimedOut, "", ""), false);
    let failure = AttemptFailure::of("a", &execution(ended(1), "", ""));
    assert!(!failure.is_repeated_by(&AttemptFailure::NoProgram));
}
