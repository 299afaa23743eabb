use serde_json::{Value, json};

use super::{ServedModel, served_models};

fn served(name: &str, context: Option<u64>) -> ServedModel {
    ServedModel { name: name.to_owned(), context }
}

#[test]
fn lists_of_common_servers_are_read_with_their_windows() {
    let vllm = json!({"data": [{"id": "qwen", "max_model_len": 32768}]});
    assert_eq!(served_models(&vllm), Some(vec![served("qwen", Some(32_768))]));
    let llama = json!({"data": [{"id": "small.gguf", "meta": {"n_ctx_train": 131_072}}]});
    // The window of the training can be larger than the one of the server.
    assert_eq!(served_models(&llama), Some(vec![served("small.gguf", None)]));
    let ollama = json!({"models": [{"name": "llama3"}, {"name": "qwen3"}]});
    assert_eq!(served_models(&ollama), Some(vec![served("llama3", None), served("qwen3", None)]));
    for unknown in [Value::Null, json!([]), json!({"data": {}}), json!({"object": "list"})] {
        assert_eq!(served_models(&unknown), None, "{unknown}");
    }
}
