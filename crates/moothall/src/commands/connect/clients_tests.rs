use super::*;

#[test]
fn only_hooks_of_this_program_are_recognized() {
    for own in
        ["moothall hook codex", "/opt/my\\ tools/moothall hook codex", "'/a b/moothall' hook zed"]
    {
        assert!(is_own_hook(own), "{own}");
    }
    for other in ["moothall check a.md", "xmoothall hook codex", "moothall hook codex; rm x", "'"] {
        assert!(!is_own_hook(other), "{other}");
    }
}
