//! Arguments of `run`.

use std::path::PathBuf;

use clap::Args;
use moothall_core::program::ProgramInput;
use moothall_core::sandbox::GuestPath;

use super::sandbox::SandboxFlags;
use super::{CallFlags, ModelFlags, RunnerArg};

const RUN_EXAMPLES: &str = "\
Expected output of the program (--expect):
  text:TEXT     exactly this text, ignoring trailing white space
  file:PATH     exactly the content of this file
  schema:PATH   one JSON value that matches the JSON schema in this file
  regex:REGEX   output that contains a match of this regular expression
  Without a prefix, the name of an existing file means schema:PATH if it contains a JSON schema and
  file:PATH otherwise; anything else means regex:REGEX.

Without --expect, --check and --expect-file the result is `ran`, not `passed`, because there is
nothing to check it against.

--stdio reads one JSON object from standard input and writes JSON lines to standard output: the
events as they happen, and finally {\"result\": …}:
  {\"task\": \"…\", \"model\": \"demo\", \"inputs\": {\"data.csv\": \"a,b\\n1,2\\n\"},
   \"expect\": {\"regex\": \"^3$\"}, \"check\": \"import sys …\", \"leaves\": [\"chart.png\"],
   \"attempts\": 3}

Examples:
  moothall run --model demo \"print the first 20 primes\" --expect 'regex:^2\\s3\\s5'
  moothall run \"plot sales.csv\" --input sales.csv --image data --expect-file chart.png --output out
  moothall run \"sort the names\" --input names.txt --check check_sorted.py --budget 0.05
  echo '{\"task\": \"print 3\"}' | moothall run --stdio";

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    /// Task of the program; reads standard input if omitted or `-`
    pub(crate) task: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelFlags,
    /// Give the program this file, read-only as /inputs/NAME (repeatable)
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Vec<PathBuf>,
    /// Require this output: a text, a JSON schema or a regular expression (see below)
    #[arg(long, value_name = "WHAT")]
    pub(crate) expect: Option<String>,
    /// Check the program's results with this Python script in a separate sandbox; it must exit with
    /// 0
    #[arg(long, value_name = "SCRIPT")]
    pub(crate) check: Option<PathBuf>,
    /// Require this file in the output directory, /workspace/out (repeatable)
    #[arg(long = "expect-file", alias = "leaves", value_name = "NAME")]
    pub(crate) leaves: Vec<GuestPath>,
    /// Write the files created by the program to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Limit the number of attempts
    #[arg(long, value_name = "N", default_value_t = ProgramInput::DEFAULT_ATTEMPTS, value_parser = clap::value_parser!(u32).range(1..=i64::from(moothall_core::program::MAX_ATTEMPTS)))]
    pub(crate) attempts: u32,
    /// Choose who executes the run: this process (`local`), or the workers of a Restate cluster in
    /// their own sandboxes (`restate` or `restate=URL`; see: moothall worker --help)
    #[arg(long = "runner", alias = "engine", value_name = "RUNNER", default_value = "local")]
    pub(crate) runner: RunnerArg,
    #[command(flatten)]
    pub(crate) sandbox: SandboxFlags,
    #[command(flatten)]
    pub(crate) calls: CallFlags,
    /// Print one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
    /// Exchange JSON with another program over standard input and output (see below)
    #[arg(long, conflicts_with_all = ["task", "json", "input", "expect", "check", "leaves"])]
    pub(crate) stdio: bool,
}
