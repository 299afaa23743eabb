use super::*;

fn args() -> Vec<String> {
    ["mcp", "--workspace", "."].map(str::to_owned).to_vec()
}

/// Adds both entries, adds them again, and removes them.
#[track_caller]
fn check(before: &str, after: &str) {
    let add = |text: &str| {
        let server = set_server(text, "moothall", &args()).unwrap();
        add_hook(&server, "moothall hook codex", 30).unwrap()
    };
    let added = add(before);
    assert_eq!(added, after);
    assert_eq!(add(&added), added);
    let removed = remove_server(&remove_hook(&added).unwrap()).unwrap();
    assert_eq!(removed, before);
    assert_eq!(remove_server(&remove_hook(before).unwrap()).unwrap(), before);
}

const SERVER: &str =
    "[mcp_servers.moothall]\ncommand = \"moothall\"\nargs = [\"mcp\", \"--workspace\", \".\"]\n";
const HOOK: &str = "\n[[hooks.PreToolUse]]\nmatcher = \"Bash|apply_patch\"\n\n[[hooks.PreToolUse.hooks]]\n\
                    type = \"command\"\ncommand = \"moothall hook codex\"\ntimeout = 30\n";

#[test]
fn entries_of_codex_are_added_and_removed_without_other_changes() {
    check("", &format!("{SERVER}{HOOK}"));
    let before = "# mine\nmodel = \"gpt-5.5\" # good\n\n[features]\nplugins = false\n";
    check(before, &format!("{before}\n{SERVER}{HOOK}"));
    let before = "[mcp_servers.other]\ncommand = \"x\"\n\n[tui]\ntheme = \"dark\"\n";
    let added = set_server(before, "moothall", &args()).unwrap();
    assert_eq!(
        added,
        format!("[mcp_servers.other]\ncommand = \"x\"\n\n{SERVER}\n[tui]\ntheme = \"dark\"\n")
    );
    assert_eq!(remove_server(&added).unwrap(), before);
}

#[test]
fn hooks_and_trust_of_the_user_are_kept() {
    let before = "[[hooks.PreToolUse]]\nmatcher = \"Bash\"\n\n[[hooks.PreToolUse.hooks]]\ntype = \"command\"\n\
                  command = \"./lint.sh\"\n\n[hooks.state.\"/h/config.toml:pre_tool_use:0:0\"]\n\
                  trusted_hash = \"sha256:00\"\n";
    let added = add_hook(before, "moothall hook codex", 30).unwrap();
    assert_eq!(added.matches("trusted_hash").count(), 1, "{added}");
    assert!(added.contains("./lint.sh") && added.contains("moothall hook codex"), "{added}");
    assert_eq!(remove_hook(&added).unwrap(), before);
}

#[test]
fn an_existing_server_keeps_fields_of_the_user_and_an_old_hook_is_replaced() {
    let before = "[mcp_servers.moothall]\ncommand = \"/old/moothall\" # here\nargs = [\"mcp\"]\nenv = { A = \"1\" }\n";
    let added = set_server(before, "moothall", &args()).unwrap();
    assert_eq!(added, format!("{SERVER}env = {{ A = \"1\" }}\n"));
    let old = add_hook("", "/old/moothall hook codex", 10).unwrap();
    let replaced = add_hook(&old, "moothall hook codex", 30).unwrap();
    assert_eq!(replaced.matches("hook codex").count(), 1, "{replaced}");
    assert!(!replaced.contains("/old"), "{replaced}");
}

#[test]
fn codex_files_that_cannot_be_edited_safely_are_refused() {
    for (text, why) in [
        ("a = ", "it is not valid TOML"),
        ("mcp_servers = 1\n", "`mcp_servers` is not a table"),
        ("[mcp_servers]\nmoothall = 1\n", "`mcp_servers.moothall` is not a table"),
    ] {
        let refused = set_server(text, "moothall", &args()).unwrap_err();
        assert!(refused.starts_with(why), "{text}: {refused}");
    }
    let refused = add_hook("[hooks]\nPreToolUse = []\n", "moothall hook codex", 30).unwrap_err();
    assert!(refused.contains("[[hooks.PreToolUse]]"), "{refused}");
}
