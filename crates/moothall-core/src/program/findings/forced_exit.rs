//! Detects programs that force exit code 0.

use super::AttemptContext;
use crate::program::python::{PythonCall, PythonStatement, PythonToken};
use crate::{FindingSeverity, RunFinding};

/// Exceptions after which a silent exit is normal.
const SILENT_EXIT_EXCEPTIONS: [&str; 4] =
    ["KeyboardInterrupt", "BrokenPipeError", "SystemExit", "GeneratorExit"];

/// Exiting with 0 in an exception handler hides the error, `os._exit` skips error reporting, and
/// exit hooks can change the exit code.
pub(crate) fn forced(attempt: &AttemptContext<'_>) -> Vec<RunFinding> {
    let source = attempt.source;
    let mut seen = Vec::new();
    for (index, line) in source.lines.iter().enumerate() {
        let calls = source.calls(line);
        let hidden = source.enclosing_headers(index).any(hides_errors);
        if calls.iter().any(|call| call.path == "os._exit") {
            seen.push((line.number, "`os._exit` skips what would show an error"));
        } else if hidden && (calls.iter().any(exits_with_zero) || raises_system_exit(line)) {
            seen.push((line.number, "an error is answered by ending with 0"));
        } else if line.tokens.windows(4).any(|four| {
            four[0].is("sys") && four[1].is(".") && four[2].is("excepthook") && four[3].is("=")
        }) {
            seen.push((line.number, "`sys.excepthook` is replaced"));
        } else if registers_exit_hook(attempt, &calls) {
            seen.push((line.number, "a hook ends the program when it ends"));
        }
    }
    let Some((first, why)) = seen.first() else { return Vec::new() };
    let severity =
        if attempt.contract.is_empty() { FindingSeverity::Warn } else { FindingSeverity::Block };
    let mut finding = attempt.finding("exit.forced", severity, &format!("line {first}: {why}"));
    finding.evidence =
        seen.iter().take(8).map(|(number, why)| format!("line {number}: {why}")).collect();
    vec![finding]
}

fn hides_errors(head: &PythonStatement<'_>) -> bool {
    let expected = || head.names().any(|name| SILENT_EXIT_EXCEPTIONS.contains(&name));
    head.starts_with("finally") || (head.starts_with("except") && !expected())
}

fn exits_with_zero(call: &PythonCall<'_, '_>) -> bool {
    let is_exit = matches!(call.path.as_str(), "sys.exit" | "exit" | "quit" | "SystemExit");
    is_exit
        && match call.args.as_slice() {
            [] => true,
            [only] => matches!(
                only.tokens,
                [PythonToken::Number("0")] | [PythonToken::Name("None" | "False")]
            ),
            _ => false,
        }
}

/// `raise SystemExit` without parentheses.
fn raises_system_exit(line: &PythonStatement<'_>) -> bool {
    matches!(line.tokens.as_slice(), [PythonToken::Name("raise"), PythonToken::Name("SystemExit")])
}

/// Whether an exit hook is registered that ends the program itself.
fn registers_exit_hook(attempt: &AttemptContext<'_>, calls: &[PythonCall<'_, '_>]) -> bool {
    let Some(call) = calls.iter().find(|call| call.path == "atexit.register") else { return false };
    let name = match call.args.first().map(|argument| argument.tokens) {
        Some([PythonToken::Name(name)]) => *name,
        Some(other) => return other.iter().any(|token| token.is("_exit") || token.is("exit")),
        None => return false,
    };
    let source = attempt.source;
    source.lines.iter().enumerate().any(|(index, line)| {
        source.enclosing_headers(index).any(|head| {
            head.starts_with("def") && head.tokens.get(1).is_some_and(|token| token.is(name))
        }) && source
            .calls(line)
            .iter()
            .any(|call| matches!(call.path.as_str(), "sys.exit" | "exit" | "quit" | "os._exit"))
    })
}
