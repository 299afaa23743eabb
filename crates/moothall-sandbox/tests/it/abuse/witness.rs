//! The host's side of the suite: what must not be reached and what must not be left behind.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use moothall_sandbox::{ProcessId, SandboxRecord};
use serde_json::json;

/// If the number of processes grows by more than this, a bomb reached the host. Other tests and
/// compilers run at the same time; the largest bomb is 2,048.
const MOST_PROCESSES: usize = 700;

/// Host resources that a program must not reach.
#[derive(Debug)]
pub(crate) struct Witness {
    folder: tempfile::TempDir,
    secret: String,
    name: String,
    tcp: Vec<TcpListener>,
    tcp6: Option<TcpListener>,
    udp: Vec<UdpSocket>,
    unix: Vec<UnixListener>,
    processes_before: usize,
    peak: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
}

impl Witness {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("abuse-").tempdir().unwrap();
        let random = uuid::Uuid::now_v7().simple().to_string();
        let (secret, name) = (format!("secret-{random}"), format!("moothall-abuse-{random}"));
        fs_err::write(folder.path().join("secret.txt"), &secret).unwrap();
        let addresses: Vec<SocketAddr> =
            own_addresses().into_iter().map(|address| SocketAddr::from((address, 0))).collect();
        let tcp = addresses.iter().map(|address| TcpListener::bind(address).unwrap()).collect();
        let udp = addresses.iter().map(|address| UdpSocket::bind(address).unwrap()).collect();
        let hidden = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let unix = vec![
            UnixListener::bind_addr(&hidden).unwrap(),
            UnixListener::bind(folder.path().join("socket")).unwrap(),
        ];
        // A host without IPv6 has no such address.
        let tcp6 = TcpListener::bind(("::1", 0)).ok();
        let (processes_before, peak) = (processes(), Arc::new(AtomicUsize::new(0)));
        let over = Arc::new(AtomicBool::new(false));
        let (seen, stop) = (Arc::clone(&peak), Arc::clone(&over));
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                seen.fetch_max(processes(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        Self { folder, secret, name, tcp, tcp6, udp, unix, processes_before, peak, over }
    }

    /// The targets of the programs, as JSON. `paths` are host folders that must not be visible.
    pub(crate) fn aims(&self, paths: &[&Path]) -> String {
        let address = |found: std::io::Result<SocketAddr>| {
            let found = found.unwrap();
            json!([found.ip().to_string(), found.port()])
        };
        let hostname = fs_err::read_to_string("/proc/sys/kernel/hostname").unwrap();
        // Cargo sets some variables for every test.
        let variables: Vec<String> = std::env::vars_os()
            .filter_map(|(name, _)| name.into_string().ok())
            .filter(|name| name.starts_with("CARGO_"))
            .take(10)
            .collect();
        assert!(!variables.is_empty(), "the tests run under cargo");
        json!({
            "file": self.folder.path().join("secret.txt"),
            "socket": self.folder.path().join("socket"),
            "abstract": self.name,
            "tcp": self.tcp.iter().map(|tcp| address(tcp.local_addr())).collect::<Vec<_>>(),
            "udp": self.udp.iter().map(|udp| address(udp.local_addr())).collect::<Vec<_>>(),
            "tcp6": self.tcp6.as_ref().map(|tcp| tcp.local_addr().unwrap().port()),
            "hostname": hostname.trim(),
            "variables": variables,
            "paths": paths,
        })
        .to_string()
    }

    /// Whether the bytes contain the host's secret.
    pub(crate) fn is_told_in(&self, bytes: &[u8]) -> bool {
        bytes.windows(self.secret.len()).any(|window| window == self.secret.as_bytes())
    }

    /// Connections and changes seen on the host.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for tcp in self.tcp.iter().chain(&self.tcp6) {
            tcp.set_nonblocking(true).unwrap();
            if tcp.accept().is_ok() {
                problems.push(format!("somebody connected to {}", tcp.local_addr().unwrap()));
            }
        }
        for udp in &self.udp {
            udp.set_nonblocking(true).unwrap();
            if udp.recv(&mut [0; 16]).is_ok() {
                problems.push(format!("something was sent to {}", udp.local_addr().unwrap()));
            }
        }
        for unix in &self.unix {
            unix.set_nonblocking(true).unwrap();
            if unix.accept().is_ok() {
                problems.push(format!("somebody connected to {:?}", unix.local_addr().unwrap()));
            }
        }
        let file = self.folder.path().join("secret.txt");
        if fs_err::read(&file).ok().as_deref() != Some(self.secret.as_bytes()) {
            problems.push("a file of the host changed".to_owned());
        }
        let entries = fs_err::read_dir(self.folder.path()).unwrap().count();
        if entries != 2 {
            problems.push(format!("{entries} entries in a folder of the host that had 2"));
        }
        let peak = self.peak.load(Ordering::Relaxed);
        if peak > self.processes_before + MOST_PROCESSES {
            let before = self.processes_before;
            problems.push(format!("the host had {before} processes, and then {peak}"));
        }
        problems
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// What is left of a sandbox after its cleanup.
pub(crate) fn remains(record: &SandboxRecord, records: &Path) -> Vec<String> {
    let leaves = &record.leaves;
    let processes = leaves
        .processes
        .iter()
        .filter(|process| ProcessId::of(process.pid) == Some(**process))
        .map(|process| format!("process {}", process.pid));
    let state = leaves.container.iter().map(|container| container.root.join(&container.id));
    let paths = leaves.cgroups.iter().chain(&leaves.folders).cloned().chain(state);
    let paths = paths
        .chain([records.join(format!("{}.json", record.name))])
        .filter(|path| path.exists())
        .map(|path| path.display().to_string());
    processes.chain(paths).map(|what| format!("still there: {what}")).collect()
}

/// Waits briefly until this process has no children and returns the names of those that remain.
pub(crate) async fn children_that_stay() -> Vec<String> {
    let until = Instant::now() + Duration::from_secs(3);
    loop {
        let children = children();
        if children.is_empty() || Instant::now() > until {
            return children;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn children() -> Vec<String> {
    let own = std::process::id().to_string();
    let stats = process_folders().filter_map(|folder| {
        let stat = fs_err::read_to_string(folder.join("stat")).ok()?;
        let (name, rest) = stat.rsplit_once(") ")?;
        (rest.split(' ').nth(1) == Some(own.as_str())).then(|| name.to_owned())
    });
    stats.collect()
}

fn processes() -> usize {
    process_folders().count()
}

fn process_folders() -> impl Iterator<Item = PathBuf> {
    fs_err::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path()).filter(
        |path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        },
    )
}

/// Loopback and the first address of another interface, if any.
fn own_addresses() -> Vec<Ipv4Addr> {
    let routes = fs_err::read_to_string("/proc/net/fib_trie").unwrap_or_default();
    let mut last = None;
    let mut own = None;
    for line in routes.lines() {
        if let Some((_, address)) = line.split_once("|-- ") {
            last = address.trim().parse::<Ipv4Addr>().ok();
        } else if line.contains("/32 host LOCAL") {
            own = own.or_else(|| last.filter(|address| !address.is_loopback()));
        }
    }
    [Some(Ipv4Addr::LOCALHOST), own].into_iter().flatten().collect()
}

#[test]
fn the_abuse_witness_detects_any_access() {
    use std::io::Write as _;

    let witness = Witness::new();
    assert_eq!(witness.problems(), Vec::<String>::new());
    for tcp in witness.tcp.iter().chain(&witness.tcp6) {
        drop(std::net::TcpStream::connect(tcp.local_addr().unwrap()).unwrap());
    }
    for udp in &witness.udp {
        let from = UdpSocket::bind((udp.local_addr().unwrap().ip(), 0)).unwrap();
        from.send_to(b"hello", udp.local_addr().unwrap()).unwrap();
    }
    for unix in &witness.unix {
        drop(std::os::unix::net::UnixStream::connect_addr(&unix.local_addr().unwrap()).unwrap());
    }
    let file = witness.folder.path().join("secret.txt");
    fs_err::OpenOptions::new().append(true).open(file).unwrap().write_all(b"!").unwrap();
    fs_err::write(witness.folder.path().join("new"), "").unwrap();
    let visits = witness.tcp.len() + witness.udp.len() + witness.unix.len();
    let visits = visits + usize::from(witness.tcp6.is_some());
    assert_eq!(witness.problems().len(), visits + 2, "{:#?}", witness.problems());
    assert!(witness.is_told_in(format!("it is {}!", witness.secret).as_bytes()));
    assert!(!witness.is_told_in(b"it is not"));
}
