use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, expected: Result<(), PathFault>) {
    assert_eq!(RelPath::parse(text).map(|_| ()), expected, "{text:?}");
}

#[test]
fn a_path_with_parent_segments_is_refused() {
    for text in ["../x", "a/../../x", "..", "a/..", "../ws-evil/x"] {
        check(text, Err(PathFault::Name));
    }
}

#[test]
fn an_absolute_path_a_drive_or_a_backslash_is_refused() {
    check("/etc/passwd", Err(PathFault::Absolute));
    check("a\\b", Err(PathFault::Absolute));
    check("\\\\server\\share", Err(PathFault::Absolute));
    check("C:/x", Err(PathFault::Character));
}

#[test]
fn an_empty_path_or_an_empty_or_dotted_name_is_refused() {
    check("", Err(PathFault::Length));
    for text in ["a//b", "a/./b", "a/b/", ".", "a.", "a "] {
        check(text, Err(PathFault::Name));
    }
}

#[test]
fn reserved_directories_are_refused_in_any_letter_case() {
    for text in [
        ".git/hooks/pre-commit",
        ".GIT/config",
        "a/.Git/x",
        ".moothall/policy.toml",
        ".hg/x",
        ".svn",
    ] {
        check(text, Err(PathFault::Reserved));
    }
    check(".gitignore", Ok(()));
}

#[test]
fn hidden_characters_in_paths_are_refused() {
    for text in
        ["a\0b", "a\nb", "a\u{202e}b", "a\u{200b}b", "x:ads", "a\u{fe0f}", "\u{e0041}", "a\u{7f}"]
    {
        check(text, Err(PathFault::Character));
    }
    check(".g\u{200c}it/config", Err(PathFault::Character));
}

#[test]
fn long_names_and_paths_are_refused() {
    check(&"n".repeat(255), Ok(()));
    check(&"n".repeat(256), Err(PathFault::Length));
    check(&"a/".repeat(2048), Err(PathFault::Name));
    check(&format!("{}a", "a/".repeat(2048)), Err(PathFault::Length));
}

#[test]
fn harmless_names_with_dots_are_allowed() {
    for text in ["a..b", "notes..v2.md", "...a", ".env", "src/über.rs"] {
        check(text, Ok(()));
    }
}

#[test]
fn new_paths_must_be_composed_and_lookalike_paths_are_detected() {
    assert_eq!(RelPath::parse_new("u\u{308}.rs"), Err(PathFault::NotComposed));
    assert!(RelPath::parse("u\u{308}.rs").is_ok());
    assert!(RelPath::is_colliding_name("u\u{308}.rs", "\u{fc}.rs"));
    assert!(RelPath::is_colliding_name("Main.rs", "main.rs"));
    assert!(!RelPath::is_colliding_name("main.rs", "main.rs"));
    assert!(!RelPath::is_colliding_name("main.rs", "mane.rs"));
}

proptest! {
    #[test]
    fn accepted_paths_stay_below_the_workspace_root(text in ".{0,40}|([a.]{1,3}/){0,4}[a.]{0,3}") {
        if let Ok(path) = RelPath::parse(&text) {
            prop_assert_eq!(path.as_str(), &text);
            let plain = std::path::Path::new(&text)
                .components()
                .all(|part| matches!(part, std::path::Component::Normal(_)));
            prop_assert!(plain);
            prop_assert_eq!(RelPath::parse(path.as_str()), Ok(path.clone()));
            let read: RelPath = serde_json::from_str(&serde_json::to_string(&path).unwrap()).unwrap();
            prop_assert_eq!(read, path);
        }
    }
}
