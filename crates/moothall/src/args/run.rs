//! `moothall run`.

use std::path::PathBuf;

use clap::Args;
use moothall_core::reflexion::ReflexionInput;
use moothall_core::sandbox::GuestPath;

use super::sandbox::SandboxFlags;
use super::{CallFlags, EngineArg, ModelFlags};

const RUN_EXAMPLES: &str = "\
What a program must print (--expect):
  text:TEXT     exactly this; white space at the end does not count
  file:PATH     exactly what this file holds
  schema:PATH   one JSON value that follows the JSON schema in this file
  regex:REGEX   something that this regular expression is found in
  Without one of these words: the name of a file that exists is schema:PATH where the file holds a
  JSON schema and file:PATH where it does not; anything else is regex:REGEX.

Without --expect, --check and --leaves the verdict is `ran`, not `passed`: nobody said what the
program had to do.

--stdio reads one JSON object from standard input and writes one a line to standard output, the
events as they happen and last {\"result\": …}:
  {\"task\": \"…\", \"model\": \"demo\", \"inputs\": {\"data.csv\": \"a,b\\n1,2\\n\"},
   \"expect\": {\"regex\": \"^3$\"}, \"check\": \"import sys …\", \"leaves\": [\"chart.png\"],
   \"attempts\": 3}

Examples:
  moothall run --model demo \"print the first 20 primes\" --expect 'regex:^2\\s3\\s5'
  moothall run \"plot sales.csv\" --input sales.csv --image data --leaves chart.png --output out
  moothall run \"sort the names\" --input names.txt --check check_sorted.py --budget 0.05
  echo '{\"task\": \"print 3\"}' | moothall run --stdio";

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    /// What the program shall do; read from standard input where it is left out or `-`
    pub(crate) task: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelFlags,
    /// File that the program can read as /inputs/NAME, and not change; may be given more than once
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Vec<PathBuf>,
    /// What the program must print: a text, a JSON schema or a regular expression (see below)
    #[arg(long, value_name = "WHAT")]
    pub(crate) expect: Option<String>,
    /// Python script that judges what the program left, in a sandbox of its own; it must end with 0
    #[arg(long, value_name = "SCRIPT")]
    pub(crate) check: Option<PathBuf>,
    /// File that the program must leave in its output folder, /workspace/out; may be given more than
    /// once
    #[arg(long, value_name = "NAME")]
    pub(crate) leaves: Vec<GuestPath>,
    /// Write the files that the program left into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Programs that may be tried
    #[arg(long, value_name = "N", default_value_t = ReflexionInput::USUAL_ATTEMPTS, value_parser = clap::value_parser!(u32).range(1..=i64::from(moothall_core::reflexion::MAX_ATTEMPTS)))]
    pub(crate) attempts: u32,
    /// Who drives the run: this process (`local`), or the workers of a Restate cluster (`restate`, or
    /// `restate=URL`; see: moothall worker --help), in sandboxes of theirs
    #[arg(long, value_name = "ENGINE", default_value = "local")]
    pub(crate) engine: EngineArg,
    #[command(flatten)]
    pub(crate) sandbox: SandboxFlags,
    #[command(flatten)]
    pub(crate) calls: CallFlags,
    /// Print one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
    /// Talk JSON with another program over standard input and output (see below)
    #[arg(long, conflicts_with_all = ["task", "json", "input", "expect", "check", "leaves"])]
    pub(crate) stdio: bool,
}
