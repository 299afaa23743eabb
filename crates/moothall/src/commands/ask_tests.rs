use super::*;
use crate::received_text::LARGE_PROMPT_TOKENS;

#[test]
fn the_line_of_a_waiting_question_names_the_model_and_a_large_prompt() {
    let model = "lab/small".parse().unwrap();
    assert_eq!(waiting_notice(&model, LARGE_PROMPT_TOKENS - 1), "waiting for lab/small");
    assert_eq!(waiting_notice(&model, 6200), "waiting for lab/small, prompt tokens: about 6200");
}
