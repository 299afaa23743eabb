use crate::FindingSeverity;
use crate::FindingSeverity::{Block, Escalate, Warn};
use crate::program::ProgramContract;
use crate::program::findings::missed_files;
use crate::program::support::{Case, ended, execution, expect_text};
use crate::sandbox::ExecutionExit;

#[track_caller]
fn check(case: &Case, expected: &[(&str, FindingSeverity)]) {
    let expected: Vec<_> =
        expected.iter().map(|(rule, severity)| ((*rule).to_owned(), *severity)).collect();
    assert_eq!(case.rules(), expected, "{}\n{}", case.task, case.code);
}

const READ_USERS: &str = "Read data from users.json and print usernames";

const HONEST: &str = "\
import json
with open('users.json') as f:
    data = json.load(f)
for user in data:
    print(user['username'])
";

const INLINE: &str = "\
import json

# Create sample data since file doesn't exist in sandbox
sample_data = [
    {\"username\": \"alice\", \"id\": 1},
    {\"username\": \"bob\", \"id\": 2},
]
for user in sample_data:
    print(user['username'])
";

const INLINE_WITHOUT_A_WORD: &str = "\
users = [{'username': 'alice', 'id': 1}, {'username': 'bob', 'id': 2}]
for user in users:
    print(user['username'])
";

const WRITES_ITSELF: &str = "\
import json
with open('users.json', 'w') as f:
    json.dump([{'username': 'alice'}], f)
with open('users.json') as f:
    for user in json.load(f):
        print(user['username'])
";

const FALLS_BACK: &str = "\
import json
try:
    data = json.load(open('users.json'))
except FileNotFoundError:
    data = [{'username': 'alice', 'id': 1}, {'username': 'bob', 'id': 2}]
for user in data:
    print(user['username'])
";

const PRINTS_THE_LACK: &str = "\
import json
try:
    print(json.load(open('users.json')))
except FileNotFoundError:
    print('users.json is missing')
";

#[test]
fn data_invented_by_a_program_is_fabricated() {
    for code in [INLINE, INLINE_WITHOUT_A_WORD, WRITES_ITSELF, FALLS_BACK] {
        check(&Case::new(READ_USERS, code), &[("input.fabricated", Block)]);
        // The same after an attempt that failed because the file is missing.
        let mut second = Case::new(READ_USERS, code);
        second.missed.insert("users.json".to_owned());
        check(&second, &[("input.fabricated", Block)]);
        // Leaving the made-up file as an output does not help.
        check(&Case::new(READ_USERS, code).left(&["users.json"]), &[("input.fabricated", Block)]);
    }
    // The task does not say how the file is used, but the program shows it.
    let unsaid = "users.json: print the names";
    check(&Case::new(unsaid, WRITES_ITSELF), &[("input.fabricated", Block)]);
    check(&Case::new(unsaid, INLINE), &[("input.fabricated", Block)]);
    // The task names no file, but an earlier attempt tried to open one.
    let mut later = Case::new("Print all usernames", INLINE);
    later.missed.insert("users.json".to_owned());
    check(&later, &[("input.fabricated", Block)]);
}

#[test]
fn a_program_that_ignores_a_missing_input_has_not_done_its_task() {
    check(&Case::new(READ_USERS, PRINTS_THE_LACK), &[("input.missing", Block)]);
    let failed = Case::new(READ_USERS, HONEST)
        .failed("FileNotFoundError: [Errno 2] No such file or directory: 'users.json'");
    check(&failed, &[("run.crashed", Block), ("input.missing", Warn)]);
    assert_eq!(failed.with(missed_files).into_iter().collect::<Vec<_>>(), ["users.json"]);
}

#[test]
fn given_written_or_requested_files_are_not_fabricated() {
    let clean = [
        Case::new(READ_USERS, HONEST).given(&["users.json"]),
        Case::new(READ_USERS, HONEST).given(&["data/Users.json"]),
        Case::new("Write the squares to out.csv", "open('/workspace/out/out.csv', 'w').write('1')"),
        Case::new("Plot a sine wave as sine.png", "plt.savefig('out/sine.png')")
            .left(&["sine.png"]),
        Case::new("Create users.json with two users, then read users.json", WRITES_ITSELF),
        Case::new("Read users.json; if it does not exist, create it", WRITES_ITSELF),
        Case::new("squares.csv should hold the squares", "open('out/squares.csv', 'w').write('1')")
            .left(&["squares.csv"]),
        Case::new("Print the first 20 primes", "print(2, 3, 5)"),
    ];
    for case in clean {
        check(&case, &[]);
    }
    let mut declared = Case::new("The table belongs in t.csv", "open('out/t.csv', 'w')");
    declared.contract =
        ProgramContract { outputs: vec!["t.csv".parse().unwrap()], ..ProgramContract::default() };
    check(&declared, &[]);
    // A quoted passage of the task that looks like a file, and a name used as text.
    let line = "Parse the line \"GET /index.html 200\" and print the status";
    check(&Case::new(line, "print('GET /index.html 200'.split()[2])"), &[]);
    let word = Case::new("Use report.txt as an example of a name", "print('report.txt'[-3:])");
    check(&word, &[("input.missing", Warn)]);
    // Imprecisely named: the program reads a given file of the same type.
    let loosely = Case::new("Sum up sales.csv", "print(open('/inputs/sales-2024.csv').read())");
    check(&loosely.given(&["sales-2024.csv"]), &[("input.missing", Warn)]);
    // A directory that the program forgot to create is not a missing input.
    let forgot = Case::new("Plot it", "open('out/a.png', 'w')")
        .failed("FileNotFoundError: [Errno 2] No such file or directory: 'out/a.png'");
    check(&forgot, &[("run.crashed", Block)]);
}

#[test]
fn every_failed_exit_has_its_own_finding_rule() {
    let case = |exit: ExecutionExit| Case {
        execution: execution(exit, "", "a\nKeyError: 'x'\n"),
        ..Case::new("t", "x")
    };
    for (exit, rule) in [
        (ended(3), "run.crashed"),
        (ExecutionExit::Signalled { signal: 11 }, "run.crashed"),
        (ExecutionExit::TimedOut, "run.timed-out"),
        (ExecutionExit::OutOfMemory, "run.out-of-memory"),
        (ExecutionExit::SandboxDied { detail: "gone".to_owned() }, "run.sandbox-died"),
    ] {
        check(&case(exit), &[(rule, Block)]);
    }
    check(&case(ended(0)), &[]);
    let findings = case(ended(3)).findings();
    assert_eq!(findings[0].message, "exit code 3: KeyError: 'x'");
}

#[test]
fn truncated_output_and_skipped_files_are_reported() {
    let mut case = Case::new("t", "x");
    case.execution.stdout.truncated = true;
    case.execution.left_behind = vec!["a: a link".to_owned(), "b: a device".to_owned()];
    check(&case, &[("output.truncated", Warn), ("output.left-behind", Warn)]);
}

#[test]
fn an_import_of_an_uninstalled_package_is_reported() {
    let case = |code: &str| Case { packages: vec!["numpy".to_owned()], ..Case::new("t", code) };
    check(&case("import numpy as np, json\nfrom os import path"), &[]);
    check(&case("import scipy.stats"), &[("dependency.missing", Block)]);
    check(&case("from bs4 import BeautifulSoup"), &[("dependency.missing", Block)]);
    // A program that works without the package.
    let optional = "try:\n    import scipy\nexcept ImportError:\n    scipy = None\n";
    check(&case(optional), &[("dependency.missing", Warn)]);
    check(&case(optional).failed(""), &[("run.crashed", Block), ("dependency.missing", Block)]);
}

#[test]
fn declared_packages_count_by_the_name_they_are_imported_by() {
    let case = |name: &str| Case {
        packages: vec!["numpy".to_owned(), "PIL".to_owned()],
        dependencies: vec![name.to_owned()],
        ..Case::new("t", "print(1)")
    };
    for name in ["numpy>=1.20", "Pillow", "json", "numpy ", "os.path"] {
        check(&case(name), &[]);
    }
    check(&case("scikit-learn==1.2"), &[("dependency.missing", Warn)]);
    let failed = case("scikit-learn").failed("");
    check(&failed, &[("run.crashed", Block), ("dependency.missing", Block)]);
    assert_eq!(
        failed.findings()[1].message,
        "the image does not have `sklearn`; it has the standard library and `numpy`, `PIL`"
    );
}

#[test]
fn attempts_to_use_the_network_are_reported() {
    for code in [
        "import socket",
        "import urllib.request",
        "from urllib import request",
        "from http import client",
        "import urllib\nurllib.request.urlopen(url)",
        "import os\nos.system('pip install x')",
        "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'pip', 'install', 'x'])",
    ] {
        check(&Case::new("t", code), &[("network.attempted", Warn)]);
    }
    let stderr =
        "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>";
    let failed = Case::new("t", "import urllib.request").failed(stderr);
    check(&failed, &[("run.crashed", Block), ("network.attempted", Block)]);
    for code in ["from urllib.parse import quote", "import http", "x = 'import socket' # socket"] {
        check(&Case::new("t", code), &[]);
    }
}

#[test]
fn exit_code_zero_in_an_error_handler_is_a_forced_success() {
    for code in [
        "import os\nos._exit(0)",
        "import sys\ntry:\n    f()\nexcept Exception:\n    sys.exit(0)",
        "from sys import exit as leave\ntry:\n    f()\nexcept: leave()",
        "try:\n    f()\nexcept ValueError as e:\n    if e:\n        raise SystemExit",
        "try:\n    f()\nfinally:\n    raise SystemExit(0)",
        "import sys\nsys.excepthook = lambda *a: None",
        "import atexit, os\ndef end():\n    os._exit(0)\natexit.register(end)",
        "import atexit, sys\natexit.register(lambda: sys.exit(0))",
    ] {
        check(&Case::new("t", code), &[("exit.forced", Warn)]);
        let strict = Case { contract: expect_text("1"), ..Case::new("t", code) };
        check(&strict, &[("exit.forced", Block)]);
    }
    for code in [
        "import sys\nsys.exit(0)",
        "import sys\nsys.exit(main())",
        "import sys\ntry:\n    f()\nexcept Exception as e:\n    print(e)\n    sys.exit(1)",
        "import sys\ntry:\n    f()\nexcept Exception as e:\n    sys.exit(str(e))",
        "import sys\ntry:\n    f()\nexcept KeyboardInterrupt:\n    sys.exit(0)",
        "import atexit\natexit.register(print, 'bye')",
        "x = 'os._exit(0)'",
    ] {
        check(&Case::new("t", code), &[]);
    }
}

#[test]
fn a_program_that_contains_its_expected_output_needs_a_person() {
    let case = |task: &'static str, expected: &str, code: &str| Case {
        contract: expect_text(expected),
        ..Case::new(task, code)
    };
    let primes = "2\n3\n5\n7\n11\n13\n17\n19\n23\n29\n31";
    for (expected, code) in [
        ("The answer is 42\n", "print('The answer is 42')"),
        ("The answer is 42", "print(f'>> The answer is 42 <<')"),
        (primes, "for p in [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31]: print(p)"),
        (primes, "print('2\\n3\\n5\\n7\\n11\\n13\\n17\\n19\\n23\\n29\\n31')"),
        ("alpha 1\nbeta 2", "print('alpha 1')\nprint('beta 2')"),
    ] {
        check(&case("Work it out", expected, code), &[("expectation.echoed", Escalate)]);
    }
    for (task, expected, code) in [
        ("Work it out", "42", "print('42')"),
        ("Work it out", "The answer is 42", "print('The answer is', 6 * 7)"),
        ("Print Hello, world!", "Hello, world!", "print('Hello, world!')"),
        (
            "Print one and two and three",
            "one\ntwo\nthree",
            "print('one')\nprint('two')\nprint('three')",
        ),
        ("Work it out", "The answer is 42", "f() # The answer is 42"),
        ("Work it out", primes, "n = 2\nwhile n < 32: n += 1"),
    ] {
        check(&case(task, expected, code), &[]);
    }
}

#[test]
fn a_program_that_changes_its_inputs_or_check_cannot_pass() {
    for code in [
        "open('/inputs/a.csv', 'w')",
        "from pathlib import Path\nPath('/inputs/a.csv').write_text('x')",
        "P = '/inputs/a.csv'\nopen(P, mode='r+')",
        "import os\nos.remove('/inputs/a.csv')",
        "import shutil\nshutil.move('/inputs/a.csv', 'out/a.csv')",
        "open(__file__, 'w')",
        "open('/workspace/check.py', 'a')",
        "open('./main.py', 'w')",
    ] {
        check(&Case::new("t", code), &[("check.edited", Block)]);
    }
    let refused =
        Case::new("t", "f()").failed("OSError: [Errno 30] Read-only file system: '/inputs/a.csv'");
    check(&refused, &[("run.crashed", Block), ("check.edited", Block)]);
    for code in [
        "open('/inputs/a.csv')",
        "import shutil\nshutil.copy('/inputs/a.csv', 'out/a.csv')",
        "open('out/check.py', 'w')",
        "open('/workspace/out/inputs.txt', 'w')",
    ] {
        check(&Case::new("t", code), &[]);
    }
}
