//! A program must not notice that it runs in a parked interpreter.

use moothall_core::guest::ExitCause;

use crate::guest::{Guest, Outcome, exited, request};

/// Runs `main.py` in a parked and in a new interpreter, in the same folder.
fn both(files: &[(&str, &str)], argv: &[&str], env: &[(&str, &str)]) -> [Outcome; 2] {
    let mut guest = Guest::start();
    for (name, text) in files {
        guest.write(name, text.as_bytes());
    }
    let mut request = request(argv);
    request.env = env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let plain = guest.run(request.clone(), b"first line\nsecond line\n").0;
    guest.park();
    let parked = guest.run(request, b"first line\nsecond line\n").0;
    [plain, parked]
}

#[track_caller]
fn check_files(files: &[(&str, &str)], argv: &[&str], env: &[(&str, &str)]) -> Outcome {
    let [plain, parked] = both(files, argv, env);
    assert_eq!(plain, parked);
    plain
}

#[track_caller]
fn check(program: &str) -> Outcome {
    check_files(&[("main.py", program)], &["python3", "main.py", "one", "two words"], &[])
}

#[test]
fn a_parked_interpreter_has_its_modules_loaded() {
    let program = "import sys; print('statistics' in sys.modules)";
    let [plain, parked] = both(&[("main.py", program)], &["python3", "main.py"], &[]);
    assert_eq!([plain, parked], [exited(0, "False\n", ""), exited(0, "True\n", "")]);
}

#[test]
fn a_program_in_a_parked_interpreter_sees_the_usual_environment() {
    let outcome = check(
        "import os, sys\n\
         print(__name__, __file__, __doc__, __spec__, __package__, __cached__, __builtins__)\n\
         print(type(__loader__).__name__, __loader__.path, list(globals()))\n\
         print(sys.argv, sys.orig_argv, sys.path, sys.flags, sys.executable, os.getcwd())\n\
         print(sorted(os.environ.items()), os.listdir('/proc/self/fd'), sys.getrecursionlimit())\n\
         print(sys.modules['__main__'].__dict__ is globals(), sys.stdout.encoding, sys.excepthook)\n",
    );
    assert_eq!(outcome.way, ExitCause::Exited(0));
    assert!(outcome.stdout.contains("['main.py', 'one', 'two words']"), "{}", outcome.stdout);
}

#[test]
fn a_parked_interpreter_reads_input_as_usual() {
    check("import sys\nprint([input(), sys.stdin.read(), sys.stdin.read()])\n");
    check("while True: print(input())\n");
    check("import os\nprint(os.read(0, 5))\n");
}

#[test]
fn a_parked_interpreter_returns_the_usual_exit_codes() {
    check("import sys; print('a', end=''); sys.exit(3)");
    check("import sys; sys.exit('words')");
    check("import sys; sys.exit()");
    check("raise SystemExit(None)");
    check("import os; print('lost'); os._exit(4)");
    check("import os, signal; os.kill(os.getpid(), signal.SIGTERM)");
    let interrupted = check("raise KeyboardInterrupt");
    assert_eq!(interrupted.way, ExitCause::Signalled(2));
    check("import sys; sys.stdout.close(); sys.exit(0)");
    check("import os; os.close(1); print('nowhere')");
}

#[test]
fn tracebacks_of_a_parked_interpreter_show_only_the_program() {
    let outcome = check("def f():\n    return 1 / 0\n\nf()\n");
    assert_eq!(outcome.way, ExitCause::Exited(1));
    check(
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError('b') from error\n",
    );
    check("try:\n    {}['a']\nexcept KeyError:\n    raise ValueError('b')\n");
    check("exec('1 / 0')");
    check("raise ExceptionGroup('many', [ValueError(1), TypeError(2)])");
    check("import traceback\ntry:\n    1 / 0\nexcept Exception:\n    traceback.print_exc()\n");
    check("import sys\nsys.excepthook = lambda *a: print('mine', a[0], a[2].tb_lineno)\n1 / 0\n");
    check("import threading\nt = threading.Thread(target=lambda: 1 / 0)\nt.start(); t.join()\n");
    for end in ["1 / 0", "raise SystemExit(2)", "pass"] {
        check(&format!("class A:\n    def __del__(self): print('gone')\na = A()\n{end}\n"));
    }
    check("assert False, 'why'");
}

#[test]
fn a_parked_interpreter_reports_invalid_programs_as_usual() {
    check("print('a'\n");
    check("def f(:\n");
    check("  indented\n");
    check("a\0b");
    check("# -*- coding: no-such-coding -*-\n");
    check("");
    check("\u{feff}print('byte order mark')\n");
    check_files(&[], &["python3", "missing.py"], &[]);
    check_files(&[("main.py/inner", "")], &["python3", "main.py"], &[]);
    check_files(&[("folder/__main__.py", "print(__file__)")], &["python3", "folder"], &[]);
    check_files(&[("main.py", "")], &["python3", "-c", "print(1)"], &[]);
}

#[test]
fn a_parked_interpreter_runs_exit_handlers_and_threads() {
    check("import atexit\natexit.register(print, 'bye')\nprint('hi')\n");
    check(
        "import threading, time\n\
         def late():\n    time.sleep(0.05)\n    print('late')\n\
         threading.Thread(target=late).start()\nprint('early')\n",
    );
    check("import sys\nsys.stdout.write('no newline')\nsys.stderr.write('none here')\n");
}

#[test]
fn modules_next_to_the_program_are_imported_first() {
    let main = "import random, helper\nprint(random.value, helper.value)\n";
    let files = [("main.py", main), ("random.py", "value = 'mine'"), ("helper.py", "value = 1")];
    let shadowed = check_files(&files, &["python3", "main.py"], &[]);
    assert_eq!(shadowed, exited(0, "mine 1\n", ""));
    let main = "import json\nprint(json.value)\n";
    let files = [("main.py", main), ("json/__init__.py", "value = 'mine'")];
    check_files(&files, &["python3", "main.py"], &[]);
}

#[test]
fn a_parked_interpreter_accepts_any_script_path() {
    let program = "import sys, inside\nprint(__file__, sys.argv, sys.path[0])\n1 / 0\n";
    let files = [("a/main.py", program), ("a/inside.py", ""), ("inside.py", "print('wrong')")];
    check_files(&files, &["python3", "a/main.py"], &[]);
    check_files(&files, &["python3", "./a/main.py"], &[]);
    check_files(&files, &["python3", "a/../a/main.py"], &[]);
}

#[test]
fn a_parked_interpreter_honours_all_environment_variables() {
    let program = "import os, sys, time\nprint(os.environ['MINE'], sys.flags.hash_randomization, time.tzname)\n";
    let files = [("main.py", program)];
    check_files(&files, &["python3", "main.py"], &[("MINE", "ä b")]);
    check_files(&files, &["python3", "main.py"], &[("MINE", "1"), ("PYTHONHASHSEED", "0")]);
    check_files(&files, &["python3", "main.py"], &[("MINE", "1"), ("TZ", "Asia/Tokyo")]);
}

#[test]
fn typical_programs_work_in_a_parked_interpreter() {
    check(
        "import pickle, dataclasses\n\
         @dataclasses.dataclass\nclass Point:\n    x: int\n    y: int = 2\n\
         print(pickle.loads(pickle.dumps(Point(1))))\n",
    );
    check(
        "import unittest\n\
         class T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(1, 1)\n\
         unittest.main(argv=['main.py'], verbosity=0, testRunner=type('R', (), {'__init__': lambda s, **k: None, 'run': lambda s, t: (print(t.countTestCases()), type('X', (), {'wasSuccessful': lambda s: True, 'testsRun': 1, 'skipped': []})())[1]}))\n",
    );
    check("import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f))\n");
    check("import warnings\nwarnings.warn('old', DeprecationWarning)\n");
    check("import logging\nlogging.warning('careful')\nlogging.getLogger('a').error('worse')\n");
    check(
        "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'print(2)'], capture_output=True))\n",
    );
    check(
        "import multiprocessing\ndef f(x):\n    return x * x\n\
         if __name__ == '__main__':\n    with multiprocessing.Pool(2) as pool:\n        print(pool.map(f, [1, 2, 3]))\n",
    );
    check(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--n')\np.parse_args()\n",
    );
    check(
        "import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    print('done')\nasyncio.run(main())\n",
    );
    check("import random\nrandom.seed(7)\nprint(random.random(), sorted({'b': 1, 'a': 2}))\n");
    check("from __future__ import annotations\nx: int = 1\nprint(__annotations__)\n");
}

#[test]
fn limits_apply_to_a_parked_interpreter() {
    let mut guest = Guest::start();
    guest.write("main.py", b"import os\ntry:\n  while True: os.dup(0)\nexcept OSError as e: print(e, flush=True)\nwhile True: pass\n");
    guest.park();
    let mut request = request(&["python3", "main.py"]);
    request.limits.open_files = 16;
    request.limits.cpu_seconds = 1;
    let (outcome, _) = guest.run(request, b"");
    let stdout = "[Errno 24] Too many open files\n".to_owned();
    let expected = Outcome { way: ExitCause::Signalled(24), stdout, stderr: String::new() };
    assert_eq!(outcome, expected);
}

#[test]
fn the_highest_possible_limits_are_accepted() {
    let mut guest = Guest::start();
    guest.write("main.py", b"print(1)");
    let mut request = request(&["python3", "main.py"]);
    request.limits.file_bytes = u64::MAX;
    request.limits.cpu_seconds = u64::MAX;
    request.limits.wall_ms = u64::MAX;
    request.limits.output_bytes = u64::MAX;
    request.limits.open_files = u32::MAX;
    assert_eq!(guest.run(request.clone(), b"").0, exited(0, "1\n", ""));
    guest.park();
    assert_eq!(guest.run(request, b"").0, exited(0, "1\n", ""));
}

#[test]
fn a_parked_interpreter_is_used_once_and_ends_with_another_program() {
    let mut guest = Guest::start();
    guest.write("main.py", b"import sys; print('statistics' in sys.modules)");
    guest.park();
    guest.park();
    assert_eq!(guest.run(request(&["python3", "main.py"]), b"").0, exited(0, "True\n", ""));
    assert_eq!(guest.run(request(&["python3", "main.py"]), b"").0, exited(0, "False\n", ""));
    guest.park();
    let (outcome, ended) = guest.run(request(&["true"]), b"");
    assert_eq!((outcome, ended.left_running), (exited(0, "", ""), 0));
    assert_eq!(guest.run(request(&["python3", "main.py"]), b"").0, exited(0, "False\n", ""));
}
