//! A client of `moothall mcp` that writes raw JSON, so it can send invalid messages.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::world::World;

/// Timeout of every wait; busy machines are slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The two versions of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// Every request carries the client and the version.
    Modern,
    /// A handshake negotiates them once.
    Legacy,
}

pub(crate) const ERAS: [Era; 2] = [Era::Modern, Era::Legacy];
pub(crate) const FORMS: &str = r#"{"elicitation": {"form": {}}}"#;
pub(crate) const PAGES: &str = r#"{"elicitation": {"url": {}}}"#;
pub(crate) const NOTHING: &str = "{}";

/// A server on standard streams and its output.
pub(crate) struct Client {
    pub(crate) child: Child,
    stdin: ChildStdin,
    lines: Receiver<Value>,
    era: Era,
    capabilities: Value,
    next: u64,
    /// Received messages that are not responses.
    pub(crate) notified: Vec<Value>,
    /// The person's answer to the server's questions, in the legacy era.
    pub(crate) person: Option<Value>,
}

impl Client {
    /// Starts `moothall mcp`, with a handshake in the legacy era.
    pub(crate) fn start(world: &World, era: Era, capabilities: &str, flags: &[&str]) -> Self {
        let mut arguments = vec!["mcp", "--workspace", "ws"];
        arguments.extend(flags);
        let mut command = world.command(&arguments);
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { return };
                let value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
                if tell.send(value).is_err() {
                    return;
                }
            }
        });
        let capabilities = serde_json::from_str(capabilities).unwrap();
        let mut client = Self {
            child,
            stdin,
            lines,
            era,
            capabilities,
            next: 0,
            notified: Vec::new(),
            person: None,
        };
        if era == Era::Legacy {
            let params = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": client.capabilities,
                "clientInfo": { "name": "tester", "version": "1" },
            });
            let answer = client.request("initialize", params);
            assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
            client.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        }
        client
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    /// Sends arbitrary bytes.
    pub(crate) fn say_raw(&mut self, bytes: &[u8]) {
        self.stdin.write_all(bytes).unwrap();
    }

    /// Sends a request without waiting for the response.
    pub(crate) fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.next += 1;
        if self.era == Era::Modern {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "tester", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            });
            for (key, value) in meta.as_object().unwrap() {
                params["_meta"][key] = value.clone();
            }
        }
        let message =
            json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        self.say(&message);
        self.next
    }

    /// The next message of any kind.
    pub(crate) fn hear(&mut self) -> Value {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => panic!("the server says nothing"),
            Err(RecvTimeoutError::Disconnected) => panic!("the server is gone"),
        }
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        loop {
            let message = self.hear();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            if message["method"] == "elicitation/create" {
                let said = self.person.clone().unwrap_or_else(|| panic!("asked: {message}"));
                self.notified.push(message.clone());
                self.say(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": said }));
                continue;
            }
            self.notified.push(message);
        }
    }

    /// Calls a tool; returns the result or the protocol error.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        answer.get("result").or_else(|| answer.get("error")).unwrap().clone()
    }

    /// Calls a tool that must succeed.
    pub(crate) fn does(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.call(tool, arguments);
        assert_ne!(result["isError"], true, "{tool}: {result}");
        let told = &result["structuredContent"];
        assert!(told.is_object(), "{tool}: {result}");
        told.clone()
    }

    /// Calls a tool that must fail; returns its message.
    pub(crate) fn refuses(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Creates a draft with this content.
    pub(crate) fn drafts(&mut self, path: &str, content: &str) -> String {
        let asked = json!({ "source_path": path, "task_id": "t1", "create": true });
        let draft = self.does("draft_request", &asked)["draft_id"].as_str().unwrap().to_owned();
        self.does("draft_write", &json!({ "draft_id": draft, "content": content }));
        draft
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A workspace with a program and a file that only people may change.
pub(crate) fn world() -> World {
    let world = World::new().with("USER", "ada");
    fs_err::create_dir_all(world.path("ws/src")).unwrap();
    world.write("ws/src/watchdog.py", "import sys\n\n\ndef main():\n    print(sys.argv)\n");
    world.write("ws/Makefile", "all:\n");
    world
}
