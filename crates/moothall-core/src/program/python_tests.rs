use super::*;

fn shape(text: &str) -> Vec<String> {
    let word = |token: &PythonToken<'_>| match token {
        PythonToken::Name(text) | PythonToken::Number(text) | PythonToken::Sign(text) => {
            (*text).to_owned()
        }
        PythonToken::Text(text) => format!("{text:?}"),
    };
    let source = PythonSource::read(text);
    let lines = source.lines.iter();
    lines
        .map(|line| {
            let words: Vec<_> = line.tokens.iter().map(word).collect();
            format!("{}@{} {}", line.number, line.indent, words.join(" "))
        })
        .collect()
}

#[test]
fn python_statements_are_split_independently_of_lines() {
    let text = "a = 1; b = 2\nif a: c()\nd(\n  1,\n  2)\ne = 1 + \\\n  2\n\n    # note\nf()";
    assert_eq!(
        shape(text),
        [
            "1@0 a = 1",
            "1@0 b = 2",
            "2@0 if a :",
            "2@1 c ( )",
            "3@0 d ( 1 , 2 )",
            "6@0 e = 1 + 2",
            "10@0 f ( )",
        ]
    );
}

#[test]
fn python_strings_and_comments_are_not_read_as_code() {
    assert_eq!(
        shape("x = 'import os # no' # import sys\ny = \"a\" 'b'\nz = '''one\n\"two\"\n''' "),
        ["1@0 x = \"import os # no\"", "2@0 y = \"ab\"", "3@0 z = \"one\\n\\\"two\\\"\\n\""]
    );
    assert_eq!(PythonSource::read("a() # one\n#two").comments, ["one", "two"]);
}

#[test]
fn escapes_are_resolved_except_in_raw_strings() {
    assert_eq!(shape(r"a('\x41\u0042\n\'')"), [r#"1@0 a ( "AB\n'" )"#]);
    assert_eq!(shape(r"a(r'\n', rb'\x41', f'{b}')"), [r#"1@0 a ( "\\n" , "\\x41" , "{b}" )"#]);
}

#[test]
fn python_programs_with_syntax_errors_are_read_to_the_end() {
    for text in ["'", "'''", "(((", ")))", "\\", "x = 'a\ny = 1", "\u{feff}a", "é = '\\", "\"\\u12"]
    {
        let _ = shape(text);
    }
    // An unclosed string ends at the line break.
    assert_eq!(shape("x = 'a\ny = 1"), ["1@0 x = \"a\"", "2@0 y = 1"]);
}

#[test]
fn a_python_line_knows_its_enclosing_block_headers() {
    let text = "try:\n  a()\nexcept ValueError:\n  if b:\n    c()\nd()\nwhile x: e()\nf()\n";
    let source = PythonSource::read(text);
    let heads = |number: usize| -> Vec<_> {
        let index = source.lines.iter().rposition(|line| line.number == number).unwrap();
        source.enclosing_headers(index).map(|head| head.number).collect()
    };
    assert_eq!(
        [heads(2), heads(5), heads(6), heads(7), heads(8)],
        [vec![1], vec![4, 3], vec![], vec![7], vec![]]
    );
}

#[test]
fn imports_are_found_in_every_spelling() {
    let text = "import os, urllib.request as u\nfrom http import (client,\n  server as s)\nfrom . import own\n\
                try:\n  import numpy\nexcept ImportError: pass\nimportlib.import_module('json')\n'import no'\n";
    let found: Vec<_> = PythonSource::read(text)
        .imports()
        .into_iter()
        .map(|import| (import.module, import.line, import.guarded))
        .collect();
    let import = |module: &str, line, guarded| (module.to_owned(), line, guarded);
    assert_eq!(
        found,
        [
            import("os", 1, false),
            import("urllib.request", 1, false),
            import("http.client", 2, false),
            import("http.server", 2, false),
            import("numpy", 6, true),
            import("json", 8, false),
        ]
    );
}

#[test]
fn calls_have_their_full_names_and_arguments() {
    let source = PythonSource::read(
        "from os import path as p\nx = p.join('a', sep=f(1, 2))\nPath('b').open('w')",
    );
    let calls: Vec<_> = source
        .lines
        .iter()
        .flat_map(|line| source.calls(line))
        .map(|call| (call.path.clone(), call.args.len(), call.receiver.len()))
        .collect();
    let call = |path: &str, args, receiver| (path.to_owned(), args, receiver);
    assert_eq!(
        calls,
        [call("os.path.join", 2, 0), call("f", 2, 0), call("Path", 1, 0), call(".open", 1, 4)]
    );
}

#[test]
fn python_file_accesses_are_classified_as_read_or_write() {
    let text = "\
import os, shutil, pandas as pd
from pathlib import Path
DATA = Path('/inputs')
TARGET = os.path.join('out', 'b.csv')
open('a.txt')
open('c.txt', mode='a')
with open(DATA / 'd.json') as f: pass
pd.read_csv(f'{DATA}/e.csv')
Path('g.txt').write_text('x')
TARGET.write_text('x')
shutil.copy('h', 'i')
os.remove('k')
frame.to_csv(TARGET)
open(name, 'w')
open(__file__, 'w')
";
    let uses = PythonSource::read(text).file_uses();
    let found: Vec<_> = uses.iter().map(|used| (used.path.as_str(), used.how)).collect();
    assert_eq!(
        found,
        [
            ("a.txt", FileAccess::Read),
            ("c.txt", FileAccess::Write),
            ("/inputs/d.json", FileAccess::Read),
            ("/inputs/e.csv", FileAccess::Read),
            ("g.txt", FileAccess::Write),
            ("out/b.csv", FileAccess::Write),
            ("h", FileAccess::Read),
            ("i", FileAccess::Write),
            ("k", FileAccess::Write),
            ("out/b.csv", FileAccess::Write),
            ("/workspace/main.py", FileAccess::Write),
        ]
    );
}

#[test]
fn python_programs_are_compared_without_comments() {
    let same = |a: &str, b: &str| PythonSource::read(a).is_equivalent_to(&PythonSource::read(b));
    assert!(same("a = 1 # one\n\nb()", "a=1\nb( )\n"));
    assert!(!same("a = 1", "a = 2"));
    assert!(!same("if a:\n  b()\nc()", "if a:\n  b()\n  c()"));
}

#[test]
fn python_standard_library_modules_are_recognised() {
    for module in ["json", "os.path", "tomllib", "zoneinfo", "__future__", "_thread", "abc"] {
        assert!(is_standard(module), "{module}");
    }
    for module in ["numpy", "requests", "tkinter", "jsonx", ""] {
        assert!(!is_standard(module), "{module}");
    }
}

#[test]
fn deeply_nested_python_brackets_are_read_in_linear_time() {
    let deep = "f(".repeat(20_000);
    let wide = "f().".repeat(10_000);
    for text in [deep, wide] {
        let source = PythonSource::read(&text);
        assert!(source.lines.iter().map(|line| source.calls(line).len()).sum::<usize>() <= 300);
    }
}
