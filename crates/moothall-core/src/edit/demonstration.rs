//! Answers of the demo model for this workflow: it can add `--version` to a Python program. Its
//! first proposal omits code, as small models do, and is rejected by the gate; the second one is
//! complete. For any other task it answers that it cannot do it.

use serde_json::json;

use super::prompt::{files_of, task_of};
use crate::model::{ModelRequest, PromptRole};

const UNKNOWN: &str = "This is the demo model: its answers are scripted. It can do one task: add --version to a Python program with a main(). For other tasks, choose a model with --model.\n";

/// The answer to a request of this workflow; `None` for other requests.
pub fn answer(request: &ModelRequest) -> Option<String> {
    let task = task_of(request)?;
    if request.schema.is_some() {
        let listed = request.turns.first().map(|turn| &*turn.block.text)?;
        let names = listed.lines().filter_map(|line| line.strip_prefix("- "));
        let file_name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let named = names.clone().filter(|path| task.contains(&file_name(path)));
        let mut chosen: Vec<&str> = named.collect();
        if chosen.is_empty() {
            chosen.extend(names.take(1));
        }
        return Some(json!({ "files": chosen }).to_string());
    }
    let earlier = request.turns.iter().filter(|turn| turn.role == PromptRole::Assistant).count();
    let files = files_of(request);
    let known = files.iter().find(|(_, text)| text.contains("def main():\n"));
    match known {
        Some((path, text)) if task.contains("--version") => Some(proposal(path, text, earlier)),
        _ => Some(UNKNOWN.to_owned()),
    }
}

fn proposal(path: &str, text: &str, earlier: usize) -> String {
    let added = "def main():\n    if \"--version\" in sys.argv[1:]:\n        print(\"1.0\")\n        return\n";
    let mut new = text.replacen("def main():\n", added, 1);
    if !new.lines().any(|line| line == "import sys" || line.starts_with("import sys,")) {
        new = format!("import sys\n{new}");
    }
    if earlier == 0 {
        let kept = new.find(added).map_or(new.len(), |at| at + added.len());
        new = format!("{}    # ... rest of the code unchanged ...\n", &new[..kept]);
    }
    let end = if new.ends_with('\n') { "" } else { "\n" };
    format!("Demonstration: main() answers --version.\n\n```python {path}\n{new}{end}```\n")
}
