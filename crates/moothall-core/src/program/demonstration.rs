//! Answers of the demo model for this workflow: scripted programs for three tasks that show every
//! path of the loop without an API key.
//!
//! - *primes*: the first program works.
//! - *sales.csv*: the first program fails on the header line, the critic points it out, and the
//!   second program works. The file must be given.
//! - *users.json*: without the file the first program fails, the critic gives bad advice and the
//!   second program makes the data up. That must not pass.
//!
//! For any other task it writes a program that explains this and fails.

use serde_json::json;

use super::prompt::task_and_files;
use crate::model::{CallPurpose, ModelRequest, PromptRole};

/// The answer to a request of this workflow; `None` for other requests.
pub fn answer(request: &ModelRequest) -> Option<String> {
    let (task, files) = task_and_files(request)?;
    let scene = DemoTask::of(task, files);
    let earlier = request.turns.iter().filter(|turn| turn.role == PromptRole::Assistant).count();
    match request.purpose {
        CallPurpose::Generate => Some(written(request, scene.reasoning(), &scene.program(earlier))),
        CallPurpose::Critique => Some(scene.critique().to_owned()),
        _ => None,
    }
}

fn written(request: &ModelRequest, reasoning: &str, program: &str) -> String {
    let code = format!("# Written by the demo model (scripted answer).\n{program}");
    if request.schema.is_none() {
        return format!("{reasoning}\n\n```python\n{code}```\n");
    }
    let answer =
        json!({"reasoning": reasoning, "code": code, "dependencies": [], "confidence": 0.5});
    answer.to_string()
}

/// The tasks it knows.
enum DemoTask {
    Primes { count: u32 },
    Sales,
    Users { given: bool },
    Unknown,
}

impl DemoTask {
    fn of(task: &str, files: &str) -> Self {
        let task = task.to_lowercase();
        if task.contains("users.json") {
            Self::Users { given: files.contains("/inputs/users.json") }
        } else if task.contains("sales.csv") {
            Self::Sales
        } else if task.contains("prime") {
            let numbers = task.split(|c: char| !c.is_ascii_digit());
            let count =
                numbers.filter_map(|number| number.parse().ok()).find(|n| (1..=5000).contains(n));
            Self::Primes { count: count.unwrap_or(20) }
        } else {
            Self::Unknown
        }
    }

    fn reasoning(&self) -> &'static str {
        match self {
            Self::Primes { .. } => "Demo: test every number against the primes found so far.",
            Self::Sales => "Demo: add up the last column.",
            Self::Users { .. } => "Demo: read the users and print their names.",
            Self::Unknown => "Demo: there is no scripted answer for this task.",
        }
    }

    /// The program of an attempt; `earlier` is the number of previous attempts.
    fn program(&self, earlier: usize) -> String {
        match (self, earlier) {
            (Self::Primes { count }, _) => PRIMES.replace("COUNT", &count.to_string()),
            (Self::Sales, 0) => SALES_WITH_HEADER.to_owned(),
            (Self::Sales, _) => SALES.to_owned(),
            (Self::Users { given: true }, _) => USERS.replace("PATH", "/inputs/users.json"),
            (Self::Users { given: false }, 0) => USERS.replace("PATH", "users.json"),
            (Self::Users { given: false }, _) => MADE_UP_USERS.to_owned(),
            (Self::Unknown, _) => UNKNOWN.to_owned(),
        }
    }

    fn critique(&self) -> &'static str {
        match self {
            Self::Sales => {
                "Demo: the first line of sales.csv holds the column names, which are not numbers. Skip it."
            }
            Self::Users { .. } => {
                "Demo of bad advice: users.json does not exist in the sandbox. Create sample data inline."
            }
            Self::Primes { .. } | Self::Unknown => {
                "Demo: answers are scripted, so there is no analysis of this failure."
            }
        }
    }
}

const PRIMES: &str = "\
primes = []
candidate = 2
while len(primes) < COUNT:
    if all(candidate % prime for prime in primes):
        primes.append(candidate)
    candidate += 1
for prime in primes:
    print(prime)
";

const SALES_WITH_HEADER: &str = "\
import csv

total = 0.0
with open(\"/inputs/sales.csv\", newline=\"\") as file:
    for row in csv.reader(file):
        total += float(row[-1])
print(f\"{total:.2f}\")
";

const SALES: &str = "\
import csv

total = 0.0
with open(\"/inputs/sales.csv\", newline=\"\") as file:
    rows = csv.reader(file)
    next(rows)
    for row in rows:
        total += float(row[-1])
print(f\"{total:.2f}\")
";

const USERS: &str = "\
import json

with open(\"PATH\") as file:
    users = json.load(file)
for user in users:
    print(user[\"username\"])
";

const MADE_UP_USERS: &str = "\
# Create sample data since the file does not exist in the sandbox.
sample_data = [
    {\"username\": \"alice\", \"id\": 1},
    {\"username\": \"bob\", \"id\": 2},
    {\"username\": \"charlie\", \"id\": 3},
]
for user in sample_data:
    print(user[\"username\"])
";

const UNKNOWN: &str = "import sys\n\nsys.exit(\n    \"This is the demo model: its answers are scripted. It knows tasks about primes, sales.csv and users.json; \"\n    \"for other tasks, choose a model with --model.\"\n)\n";

#[cfg(test)]
#[path = "demonstration_tests.rs"]
mod tests;
