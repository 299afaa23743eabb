use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, expected: &[(&str, &str, bool)]) {
    let blocks: Vec<_> = fenced_blocks(text)
        .into_iter()
        .map(|block| (block.language, block.text, block.closed))
        .collect();
    assert_eq!(blocks, expected);
}

#[test]
fn fenced_blocks_have_their_language_and_exact_lines() {
    check(
        "Here:\n```python\nprint(1)\n```\nand\n~~~\nx\n~~~\n",
        &[("python", "print(1)\n", true), ("", "x\n", true)],
    );
}

#[test]
fn a_longer_fence_may_contain_a_shorter_one() {
    check("````md\n```\ninner\n```\n````", &[("md", "```\ninner\n```\n", true)]);
}

#[test]
fn a_block_without_its_closing_fence_is_kept_and_marked() {
    check("```python\nprint(1)", &[("python", "print(1)", false)]);
}

#[test]
fn inline_code_and_deep_indents_are_not_fences() {
    check("``` not `code` ```\n    ```\n", &[]);
    check("no code at all", &[]);
}

proptest! {
    #[test]
    fn fenced_blocks_of_any_text_are_parts_of_it(text in any::<String>()) {
        for block in fenced_blocks(&text) {
            prop_assert!(text.contains(block.text));
        }
    }

    #[test]
    fn a_program_survives_being_fenced(lines in prop::collection::vec("[a-z0-9 =()]{0,20}", 0..8)) {
        let program: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let fenced = format!("Text before.\n```python\n{program}```\n");
        prop_assert_eq!(fenced_blocks(&fenced), vec![FencedBlock { language: "python", text: &program, closed: true }]);
    }
}
