//! Thousands of connections that never send a complete request, against the real server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::world::World;

const HALF_OPEN: usize = 5_000;
const MAX_GROWTH_KB: u64 = 40 * 1024;
const MAX_LATENCY: Duration = Duration::from_millis(100);

struct ServerProcess {
    child: Child,
    address: String,
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl ServerProcess {
    fn start(world: &World) -> Self {
        let arguments = ["serve", "--auth", "none", "--addr", "127.0.0.1:0", "--model", "demo"];
        let mut child = world.command(&arguments).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").unwrap().to_owned();
        Self { child, address }
    }

    /// Resident memory in kB.
    fn memory_kb(&self) -> u64 {
        let status = fs_err::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// The time of one request on a new connection.
    fn latency(&self, path: &str) -> Duration {
        let began = Instant::now();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let host = &self.address;
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        began.elapsed()
    }

    fn latencies(&self) -> Vec<Duration> {
        let mut all: Vec<Duration> = (0..20)
            .map(|number| self.latency(if number % 2 == 0 { "/healthz" } else { "/api/runs" }))
            .collect();
        all.sort();
        all
    }
}

/// 2,000 clients that connect at the same moment and send their requests later are all answered.
fn burst(address: &str) {
    let mut clients: Vec<TcpStream> =
        (0..2_000).map(|_| TcpStream::connect(address).unwrap()).collect();
    let request = format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    for client in &mut clients {
        client.write_all(request.as_bytes()).unwrap();
    }
    for mut client in clients {
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

fn allow_open_files(files: u64) {
    let mut limit = getrlimit(Resource::Nofile);
    let enough = limit.maximum.is_none_or(|maximum| maximum >= files);
    assert!(enough, "this test opens {files} files: raise the hard limit (`ulimit -Hn`)");
    limit.current = Some(limit.current.unwrap_or(u64::MAX).max(files));
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// Regression: 3,000 such connections used 238 MB and stayed open as long as the client wanted.
#[test]
fn five_thousand_half_open_connections_cost_little_memory_and_delay_nobody() {
    allow_open_files(HALF_OPEN as u64 + 2_200);
    let world = World::new();
    let server = ServerProcess::start(&world);
    server.latencies();
    let before = server.memory_kb();
    let began = Instant::now();
    let mut half_open = Vec::new();
    for number in 0..HALF_OPEN {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        // One in ten sends nothing at all. The server may have closed the connection already.
        if number % 10 > 0 {
            let _ = stream.write_all(b"GET /api/runs HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: ");
        }
        half_open.push(stream);
    }
    let opened = began.elapsed();
    let latencies = server.latencies();
    let growth = server.memory_kb().saturating_sub(before);
    let (median, longest) = (latencies[latencies.len() / 2], latencies[latencies.len() - 1]);
    println!(
        "opened in {opened:?}; memory: {before} kB + {growth} kB; latency: median {median:?}, \
         longest {longest:?}"
    );
    assert!(growth <= MAX_GROWTH_KB, "memory grew by {growth} kB");
    assert!(median < MAX_LATENCY, "median latency: {median:?}");
    burst(&server.address);
}
