use std::path::Path;

use super::{DraftBypass, find_bypasses};

const BOTH: &str = r#"{
  // two servers
  "mcpServers": {
    "moothall": { "command": "moothall", "args": ["mcp", "--workspace", "."] },
    "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "."] },
    "weather": { "command": "weather-mcp" }
  }
}"#;

fn found(name: &str, text: &str) -> Vec<DraftBypass> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    fs_err::create_dir_all(file.parent().unwrap()).unwrap();
    fs_err::write(file, text).unwrap();
    let cut = |way: DraftBypass| DraftBypass {
        file: way.file.strip_prefix(folder.path()).unwrap().to_owned(),
        ..way
    };
    let home = Path::new("/nonexistent");
    find_bypasses(folder.path(), Some(home)).into_iter().map(cut).collect()
}

#[test]
fn a_file_server_next_to_moothall_is_reported_as_a_bypass() {
    for name in [".mcp.json", ".cursor/mcp.json"] {
        let expected = [DraftBypass { file: name.into(), server: "files".to_owned() }];
        assert_eq!(found(name, BOTH), expected);
    }
}

#[test]
fn bypasses_are_found_in_project_lists_and_other_clients() {
    let zed = r#"{ "context_servers": {
        "drafts": { "command": { "path": "/usr/bin/moothall", "args": ["mcp"] } },
        "run": { "command": { "path": "bash-mcp" } } } }"#;
    let expected = [DraftBypass { file: ".zed/settings.json".into(), server: "run".to_owned() }];
    assert_eq!(found(".zed/settings.json", zed), expected);
    let projects =
        format!(r#"{{ "projects": {{ "/a": {} }} }}"#, BOTH.replace("// two servers", ""));
    assert_eq!(found(".mcp.json", &projects).len(), 1);
}

#[test]
fn no_bypass_is_reported_for_other_clients_or_invalid_files() {
    let without = BOTH.replace("moothall", "other");
    for text in [without.as_str(), "{", "[]", "null", ""] {
        assert_eq!(found(".mcp.json", text), []);
    }
}
