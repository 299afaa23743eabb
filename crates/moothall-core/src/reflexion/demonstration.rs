//! What the demonstration model says in this workflow: canned programs for three tasks, so that
//! every turn the loop can take is seen without a key.
//!
//! - *primes*: the first program works.
//! - *sales.csv*: the first program stumbles over the header line, the critic says so, the second
//!   works. The file must be given.
//! - *users.json*: without the file the first program fails, the critic gives bad advice and the
//!   second program makes the data up. That must not pass.
//!
//! For every other task it writes a program that says what it is and fails.

use serde_json::json;

use super::prompt::task_and_files;
use crate::model::{ModelRequest, Purpose, Role};

/// The answer to a request of this workflow; nothing for requests of others.
pub fn answer(request: &ModelRequest) -> Option<String> {
    let (task, files) = task_and_files(request)?;
    let scene = Scene::of(task, files);
    let earlier = request.turns.iter().filter(|turn| turn.role == Role::Assistant).count();
    match request.purpose {
        Purpose::Generate => Some(written(request, scene.reasoning(), &scene.program(earlier))),
        Purpose::Critique => Some(scene.critique().to_owned()),
        _ => None,
    }
}

fn written(request: &ModelRequest, reasoning: &str, program: &str) -> String {
    let code = format!("# Written by the demonstration: no model was asked.\n{program}");
    if request.schema.is_none() {
        return format!("{reasoning}\n\n```python\n{code}```\n");
    }
    let answer =
        json!({"reasoning": reasoning, "code": code, "dependencies": [], "confidence": 0.5});
    answer.to_string()
}

/// The tasks it knows.
enum Scene {
    Primes { count: u32 },
    Sales,
    Users { given: bool },
    Unknown,
}

impl Scene {
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
            Self::Primes { .. } => {
                "Demonstration: try every number against the primes found so far."
            }
            Self::Sales => "Demonstration: add up the last column.",
            Self::Users { .. } => "Demonstration: read the users and print their names.",
            Self::Unknown => "Demonstration: this task is not one of those it can play.",
        }
    }

    /// The program of an attempt; `earlier` is how many came before.
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
                "Demonstration: the first line of sales.csv holds the names of the columns, and they are not numbers. Skip it."
            }
            Self::Users { .. } => {
                "Demonstration of bad advice: users.json does not exist in the sandbox. Create sample data inline."
            }
            Self::Primes { .. } | Self::Unknown => {
                "Demonstration: no model was asked, so nobody can say what is wrong."
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

const UNKNOWN: &str = "\
import sys

sys.exit(
    \"This is a demonstration: no model was asked. It can play tasks about primes, sales.csv and users.json; \"
    \"to have another one solved, choose a model with --model.\"
)
";

#[cfg(test)]
#[path = "demonstration_tests.rs"]
mod tests;
