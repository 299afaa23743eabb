use super::*;

const LOG: &str = "\
3.5+0.5\tserde\tbuild\t0\t\"derive\"\t/t/debug/deps
1.0+0.0\tserde\tcheck\t0\t\"derive\"\t/t/debug/deps
6.0+0.0\tserde\tbuild\ts\t\"derive\"\"rc\"\t/t/guest/x86_64-unknown-linux-gnu/guest/deps
0.5+0.1\tbuild_script_build\tbuild-script\t0\t\t/t/debug/build/serde-1234
30.0+0.0\tmoothall_core\ttest\t0\t\t/t/debug/deps
";

#[test]
fn the_report_lists_duplicate_compilations_with_the_reason() {
    let all = parse(LOG).unwrap();
    assert_eq!(
        report(&all),
        "\
5 compilations, 0.69 min of CPU time

by kind and place
   0.50 min      1 × test in t/debug
   0.10 min      1 × build in x86_64-unknown-linux-gnu/guest
   0.07 min      1 × build in t/debug
   0.02 min      1 × check in t/debug
   0.01 min      1 × build-script in t/debug

longest
   0.50 min  moothall_core (test in t/debug)
   0.10 min  serde (build in x86_64-unknown-linux-gnu/guest)
   0.07 min  serde (build in t/debug)
   0.02 min  serde (check in t/debug)
   0.01 min  build_script_build (build-script in t/debug)

compiled more than once
   0.18 min  3 × serde: kind (build check), place (t/debug x86_64-unknown-linux-gnu/guest), opt-level (0 s), 2 feature sets
"
    );
}

#[test]
fn a_truncated_compilation_log_line_is_an_error() {
    let error = parse("1.0+0.0\tserde\tbuild").unwrap_err();
    assert_eq!(format!("{error:#}"), "unreadable line `1.0+0.0\tserde\tbuild`: missing column");
}
