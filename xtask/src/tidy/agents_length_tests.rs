use super::*;
use crate::tidy::headlines;

#[test]
fn sixty_lines_pass() {
    let tree = SourceTree::of(&[("AGENTS.md", &"x\n".repeat(60))]);
    assert_eq!(headlines(&check(&tree)), [""; 0]);
}

#[test]
fn one_line_more_fails() {
    let tree = SourceTree::of(&[("AGENTS.md", &"x\n".repeat(61))]);
    assert_eq!(headlines(&check(&tree)), ["AGENTS.md: [agents-length] 61 lines, more than 60"]);
}

#[test]
fn missing_file_fails() {
    assert_eq!(
        headlines(&check(&SourceTree::default())),
        ["AGENTS.md: [agents-length] is missing"]
    );
}
