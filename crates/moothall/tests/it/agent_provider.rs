//! A fake model for real coding agents: sends scripted tool calls over the four wire formats of the
//! clients.
//!
//! A step that was answered by a tool result is done, so every request gets the next step.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// What the model asks the agent to do.
#[derive(Debug, Clone)]
pub(crate) enum AgentStep {
    /// Write a file of the workspace.
    Write { path: String, content: String },
    /// Run a shell command.
    Shell(String),
}

/// A provider on loopback, until the process ends.
pub(crate) struct AgentProvider {
    pub(crate) port: u16,
    /// Receives the number of tool results of each request.
    pub(crate) requests: Receiver<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgentWire {
    Anthropic,
    Responses,
    Gemini,
    Chat,
}

/// The next action of the model.
enum ModelAction {
    Text(&'static str),
    /// Name, arguments, and whether the tool takes free text.
    Call(String, Value, bool),
}

impl AgentProvider {
    /// `root` is the workspace, for clients that want absolute paths.
    pub(crate) fn start(root: &str, steps: Vec<AgentStep>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (send, requests) = channel();
        let root = root.to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (root, steps, send) = (root.clone(), steps.clone(), send.clone());
                std::thread::spawn(move || serve(stream, &root, &steps, &send));
            }
        });
        Self { port, requests }
    }
}

fn serve(stream: TcpStream, root: &str, steps: &[AgentStep], requests: &Sender<usize>) {
    let Ok(reading) = stream.try_clone() else { return };
    let (mut reader, mut writer) = (BufReader::new(reading), stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let is_post = line.starts_with("POST ");
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let mut header = String::new();
            if reader.read_line(&mut header).unwrap_or(0) == 0 || header == "\r\n" {
                break;
            }
            let header = header.to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            is_chunked |= header.starts_with("transfer-encoding:") && header.contains("chunked");
        }
        let body = match is_chunked {
            true => read_chunks(&mut reader),
            false => {
                let mut body = vec![0; length];
                if reader.read_exact(&mut body).is_err() {
                    return;
                }
                body
            }
        };
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let (kind, text) = match wire_of(&path).filter(|_| is_post) {
            None => ("application/json", r#"{"object":"list","data":[],"models":[]}"#.to_owned()),
            Some(wire) => {
                let done = results(wire, &body);
                let _ = requests.send(done);
                let action = choose(wire, &body, steps, done, root);
                answer(wire, &action, &body, &path)
            }
        };
        let length = text.len();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n");
        if writer
            .write_all(head.as_bytes())
            .and_then(|()| writer.write_all(text.as_bytes()))
            .is_err()
        {
            return;
        }
    }
}

fn read_chunks(reader: &mut BufReader<TcpStream>) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let mut size = String::new();
        if reader.read_line(&mut size).unwrap_or(0) == 0 {
            return body;
        }
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let mut chunk = vec![0; size + 2];
        if reader.read_exact(&mut chunk).is_err() || size == 0 {
            return body;
        }
        body.extend_from_slice(&chunk[..size]);
    }
}

fn wire_of(path: &str) -> Option<AgentWire> {
    let path = path.split('?').next().unwrap_or_default();
    match path {
        _ if path.ends_with("/messages") => Some(AgentWire::Anthropic),
        _ if path.ends_with("/responses") => Some(AgentWire::Responses),
        _ if path.ends_with("/chat/completions") => Some(AgentWire::Chat),
        _ if path.contains("enerateContent") => Some(AgentWire::Gemini),
        _ => None,
    }
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

/// The names of the tools that the client offers, and whether each takes free text.
fn tools(wire: AgentWire, body: &Value) -> Vec<(String, bool)> {
    let named = |tool: &Value| tool["name"].as_str().map(str::to_owned);
    let all = list(body, "tools").iter();
    match wire {
        AgentWire::Anthropic => all.filter_map(named).map(|name| (name, false)).collect(),
        AgentWire::Responses => {
            all.filter_map(|tool| Some((named(tool)?, tool["type"] == "custom"))).collect()
        }
        AgentWire::Gemini => all
            .flat_map(|tool| list(tool, "functionDeclarations"))
            .filter_map(named)
            .map(|name| (name, false))
            .collect(),
        AgentWire::Chat => {
            all.filter_map(|tool| named(&tool["function"])).map(|name| (name, false)).collect()
        }
    }
}

/// Counts the tool results in a conversation.
fn results(wire: AgentWire, body: &Value) -> usize {
    let parts = |turns: &str, parts: &'static str| -> Vec<Value> {
        list(body, turns).iter().flat_map(|turn| list(turn, parts).to_vec()).collect()
    };
    match wire {
        AgentWire::Anthropic => {
            parts("messages", "content").iter().filter(|part| part["type"] == "tool_result").count()
        }
        AgentWire::Responses => {
            let is_result = |item: &&Value| {
                item["type"].as_str().is_some_and(|kind| kind.ends_with("_call_output"))
            };
            list(body, "input").iter().filter(is_result).count()
        }
        AgentWire::Gemini => parts("contents", "parts")
            .iter()
            .filter(|part| !part["functionResponse"].is_null())
            .count(),
        AgentWire::Chat => {
            list(body, "messages").iter().filter(|turn| turn["role"] == "tool").count()
        }
    }
}

fn choose(
    wire: AgentWire,
    body: &Value,
    steps: &[AgentStep],
    done: usize,
    root: &str,
) -> ModelAction {
    let offered = tools(wire, body);
    // A request for a title has no tools.
    if offered.is_empty() {
        return ModelAction::Text("ok");
    }
    let Some(step) = steps.get(done) else { return ModelAction::Text("done") };
    let candidates: Vec<(&str, Value)> = match step {
        AgentStep::Write { path, content } => {
            let full = format!("{root}/{path}");
            let shell = format!("cat > '{path}' <<'FAKE_END'\n{content}FAKE_END");
            vec![
                ("Write", json!({ "file_path": full, "content": content })),
                ("write_file", json!({ "file_path": full, "content": content })),
                ("write", json!({ "filePath": full, "content": content })),
                ("exec_command", json!({ "cmd": shell })),
                ("shell_command", json!({ "command": shell })),
            ]
        }
        AgentStep::Shell(command) => {
            let described = json!({ "command": command, "description": "run a command" });
            vec![
                ("Bash", described.clone()),
                ("run_shell_command", described.clone()),
                ("bash", described),
                ("exec_command", json!({ "cmd": command })),
                ("shell_command", json!({ "command": command })),
            ]
        }
    };
    for (name, arguments) in candidates {
        if let Some((_, is_custom)) = offered.iter().find(|(known, _)| known == name) {
            return ModelAction::Call(name.to_owned(), arguments, *is_custom);
        }
    }
    ModelAction::Text("no tool fits")
}

fn unique() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
}

/// The content type and the body of an answer.
fn answer(
    wire: AgentWire,
    action: &ModelAction,
    body: &Value,
    path: &str,
) -> (&'static str, String) {
    let events = match wire {
        AgentWire::Anthropic => anthropic(action, body),
        AgentWire::Responses => responses(action, body),
        AgentWire::Gemini => gemini(action),
        AgentWire::Chat => chat(action, body),
    };
    let is_streamed = match wire {
        AgentWire::Gemini => path.contains(":stream"),
        _ => body["stream"] == true,
    };
    if !is_streamed {
        let whole = events.first().map(Value::to_string).unwrap_or_default();
        return ("application/json", whole);
    }
    let mut text = String::new();
    for event in events.iter().skip(usize::from(wire != AgentWire::Gemini)) {
        if let (Some(name), AgentWire::Anthropic | AgentWire::Responses) =
            (event["type"].as_str(), wire)
        {
            text.push_str(&format!("event: {name}\n"));
        }
        text.push_str(&format!("data: {event}\n\n"));
    }
    if wire == AgentWire::Chat {
        text.push_str("data: [DONE]\n\n");
    }
    ("text/event-stream", text)
}

/// The whole message, then its events.
fn anthropic(action: &ModelAction, body: &Value) -> Vec<Value> {
    let usage = json!({ "input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0 });
    let (block, start, delta, stop) = match action {
        ModelAction::Text(text) => (
            json!({ "type": "text", "text": text }),
            json!({ "type": "text", "text": "" }),
            json!({ "type": "text_delta", "text": text }),
            "end_turn",
        ),
        ModelAction::Call(name, arguments, _) => {
            let id = format!("toolu_{}", unique());
            (
                json!({ "type": "tool_use", "id": id, "name": name, "input": arguments }),
                json!({ "type": "tool_use", "id": id, "name": name, "input": {} }),
                json!({ "type": "input_json_delta", "partial_json": arguments.to_string() }),
                "tool_use",
            )
        }
    };
    let message = |content: Value, stop: Value| {
        json!({ "id": format!("msg_{}", unique()), "type": "message", "role": "assistant", "model": body["model"],
                "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage })
    };
    vec![
        message(json!([block]), stop.into()),
        json!({ "type": "message_start", "message": message(json!([]), Value::Null) }),
        json!({ "type": "content_block_start", "index": 0, "content_block": start }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": stop, "stop_sequence": null }, "usage": usage }),
        json!({ "type": "message_stop" }),
    ]
}

fn responses(action: &ModelAction, body: &Value) -> Vec<Value> {
    let at = unique();
    let item = match action {
        ModelAction::Text(text) => {
            json!({ "type": "message", "id": format!("msg_{at}"), "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }] })
        }
        ModelAction::Call(name, arguments, true) => {
            json!({ "type": "custom_tool_call", "id": format!("ctc_{at}"),
            "call_id": format!("call_{at}"), "name": name, "input": arguments })
        }
        ModelAction::Call(name, arguments, false) => {
            json!({ "type": "function_call", "id": format!("fc_{at}"),
            "call_id": format!("call_{at}"), "name": name, "arguments": arguments.to_string() })
        }
    };
    let usage = json!({ "input_tokens": 10, "input_tokens_details": { "cached_tokens": 0 }, "output_tokens": 5,
        "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 15 });
    let id = format!("resp_{at}");
    let open = json!({ "id": id, "object": "response", "model": body["model"], "status": "in_progress", "output": [] });
    let end = json!({ "id": id, "object": "response", "model": body["model"], "status": "completed", "output": [item], "usage": usage });
    vec![
        end.clone(),
        json!({ "type": "response.created", "response": open }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": item }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": end }),
    ]
}

fn gemini(action: &ModelAction) -> Vec<Value> {
    let part = match action {
        ModelAction::Text(text) => json!({ "text": text }),
        ModelAction::Call(name, arguments, _) => {
            json!({ "functionCall": { "name": name, "args": arguments } })
        }
    };
    vec![json!({
        "candidates": [{ "index": 0, "finishReason": "STOP", "content": { "role": "model", "parts": [part] } }],
        "usageMetadata": { "promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15 },
        "modelVersion": "fake",
    })]
}

fn chat(action: &ModelAction, body: &Value) -> Vec<Value> {
    let usage = json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 });
    let id = format!("chatcmpl-{}", unique());
    let (delta, stop) = match action {
        ModelAction::Text(text) => (json!({ "role": "assistant", "content": text }), "stop"),
        ModelAction::Call(name, arguments, _) => (
            json!({ "role": "assistant", "content": null, "tool_calls": [{ "index": 0, "id": format!("call_{}", unique()),
                "type": "function", "function": { "name": name, "arguments": arguments.to_string() } }] }),
            "tool_calls",
        ),
    };
    let chunk = |choice: Value| json!({ "id": id, "created": 1, "model": body["model"], "object": "chat.completion.chunk", "choices": [choice], "usage": usage });
    vec![
        json!({ "id": id, "created": 1, "model": body["model"], "object": "chat.completion", "usage": usage,
            "choices": [{ "index": 0, "message": delta, "finish_reason": stop }] }),
        chunk(json!({ "index": 0, "delta": delta, "finish_reason": null })),
        chunk(json!({ "index": 0, "delta": {}, "finish_reason": stop })),
    ]
}
