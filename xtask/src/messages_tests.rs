use super::*;

#[test]
fn the_page_has_messages_once_and_leaves_out_code_and_tests() {
    let source = r#"
        /// Not a message but a comment.
        fn f() {
            g("cannot open {path}", "cannot open {path}", "x", "SELECT a FROM runs");
            h("two lines \
               become one", "<p>not this</p>", "one-word", "1 2 3");
        }
    "#;
    let tree = SourceTree::of(&[
        ("crates/a/src/f.rs", source),
        ("crates/a/src/f_tests.rs", source),
        ("xtask/src/f.rs", source),
    ]);
    let page = page(&tree).unwrap();
    assert_eq!(
        page.strip_prefix(HEAD).unwrap(),
        "\n## a\n\n### f.rs\n\n```text\ncannot open {path}\ntwo lines become one\n```\n"
    );
}
