use std::path::Path;

use super::{DraftBypass, ways_around};

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
    ways_around(folder.path(), Some(home)).into_iter().map(cut).collect()
}

#[test]
fn a_server_for_files_beside_ours_is_a_way_around() {
    for name in [".mcp.json", ".cursor/mcp.json"] {
        let expected = [DraftBypass { file: name.into(), server: "files".to_owned() }];
        assert_eq!(found(name, BOTH), expected);
    }
}

#[test]
fn lists_of_projects_and_of_other_clients_are_found() {
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
fn nothing_is_said_about_clients_without_drafts_and_files_that_are_none() {
    let without = BOTH.replace("moothall", "other");
    for text in [without.as_str(), "{", "[]", "null", ""] {
        assert_eq!(found(".mcp.json", text), []);
    }
}
