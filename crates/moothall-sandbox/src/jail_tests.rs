use std::io::Read as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use moothall_core::sandbox::SelfTest;

use super::{
    FIRST_FD, JailCommand, JailReport, JailedProcess, LandlockCoverage, own_files, read_report,
};
use crate::SandboxError;
use crate::microvm::real_microvm::jail;
use crate::spawner::spawn;

/// Runs a script in the jail and returns the report and the script's output.
async fn jailed(
    jail: &JailCommand,
    script: &str,
    files: Vec<OwnedFd>,
) -> (Result<JailReport, SandboxError>, String) {
    let jailed = JailedProcess {
        program: "/bin/sh".into(),
        args: vec!["-c".to_owned(), script.to_owned()],
        devices: vec!["/dev/null".into()],
        group: None,
        files,
    };
    let (mut command, report) = jail.command(jailed).unwrap();
    command.stdout(Stdio::piped());
    let mut process = spawn(command).await.unwrap();
    let report = read_report(report).await;
    let mut printed = String::new();
    process.take_stdout().unwrap().read_to_string(&mut printed).unwrap();
    (report, printed)
}

#[tokio::test]
async fn a_jailed_process_cannot_read_write_or_inherit_anything() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    fs_err::write(secret.path(), "secret").unwrap();
    // A file descriptor that leaks to children by mistake. The shell does not use this number
    // itself.
    let leaked = rustix::io::fcntl_dupfd_cloexec(tempfile::tempfile().unwrap(), 200).unwrap();
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
    let script = format!(
        "try() {{ if eval \"$2\" >/dev/null 2>&1; then echo \"$1 yes\"; else echo \"$1 no\"; fi; }}
         try runs true
         try passed-file 'test -e /proc/self/fd/{FIRST_FD}'
         try report 'test -e /proc/self/fd/3'
         try leaked-file 'test -e /proc/self/fd/{leaked}'
         try reads-secret 'cat {secret}'
         try reads-etc 'cat /etc/passwd'
         try lists-home 'ls /root /home'
         try writes 'echo x > {secret}.new'
         try signals 'kill -0 {parent}'
         try dumps-core 'ulimit -c 1'
         try variables 'test -n \"$HOME$CARGO\"'
         id -u",
        leaked = leaked.as_raw_fd(),
        secret = secret.path().display(),
        parent = std::process::id(),
    );
    let passed = tempfile::tempfile().unwrap().into();
    let (report, printed) = jailed(&jail(), &script, vec![passed]).await;
    let report = report.unwrap();
    assert!(report.no_new_privileges);
    let is_root = rustix::process::geteuid().is_root();
    assert_eq!(report.uid, if is_root { 65_534 } else { rustix::process::geteuid().as_raw() });
    let expected = format!(
        "runs yes\npassed-file yes\nreport no\nleaked-file no\nreads-secret no\nreads-etc no\n\
         lists-home no\nwrites no\nsignals no\ndumps-core no\nvariables no\n{}\n",
        report.uid
    );
    assert_eq!(printed, expected, "{report:?}");
}

#[tokio::test]
async fn a_jail_with_another_parent_process_starts_nothing() {
    let inner = jail().program.display().to_string();
    // A shell in between, as if the real parent had died and the child had been reparented.
    let args = ["-c", "\"$@\" & wait", "sh", &inner].map(ToOwned::to_owned).to_vec();
    let between = JailCommand { program: "/bin/sh".into(), args };
    let (report, printed) = jailed(&between, "echo started", Vec::new()).await;
    let problem = "the jail cannot start a sandbox: the parent process is gone";
    assert_eq!((report.unwrap_err().to_string().as_str(), printed.as_str()), (problem, ""));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_reported() {
    let jailed = JailedProcess {
        program: "/nowhere/qemu".into(),
        args: Vec::new(),
        devices: Vec::new(),
        group: None,
        files: Vec::new(),
    };
    let (command, report) = jail().command(jailed).unwrap();
    let _process = spawn(command).await.unwrap();
    let error = read_report(report).await.unwrap_err().to_string();
    assert!(error.contains("cannot start `/nowhere/qemu`"), "{error}");
}

#[test]
fn a_jailed_program_outside_of_bin_may_open_only_itself() {
    let check = |program: &str, expected: &[&str]| {
        let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
        assert_eq!(own_files(Path::new(program)), expected);
    };
    check("/srv/me/qemu", &["/srv/me/qemu"]);
    check("/qemu", &["/qemu"]);
    check("/bin/qemu", &["/bin/qemu"]);
    check("/opt/qemu/bin/qemu", &["/opt/qemu/bin/qemu", "/opt/qemu"]);
}

#[tokio::test]
async fn a_jail_report_is_either_isolation_or_a_failure() {
    async fn check(said: &str, expected: Result<u32, &str>) {
        let (from, mut to) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut to, said.as_bytes()).unwrap();
        drop(to);
        let report = read_report(from).await;
        let report = report.map(|report| report.uid).map_err(|error| error.to_string());
        let cannot = "the jail cannot start a sandbox: ";
        assert_eq!(report, expected.map_err(|why| format!("{cannot}{why}")));
    }
    let walls =
        r#"{"walls":{"uid":65534,"no_new_privileges":true,"landlock":"full","landlock_abi":7}}"#;
    check(&format!("{walls}\n"), Ok(65_534)).await;
    check(&format!("{walls}\n{{\"failed\":\"no such program\"}}\n"), Err("no such program")).await;
    check("", Err("it exited before it was confined")).await;
    check("{}", Err("the report is not valid")).await;
}

#[test]
fn missing_isolation_fails_the_self_tests_of_the_jail() {
    let check = |uid, landlock, expected: [(&str, bool); 3]| {
        let report = JailReport { uid, no_new_privileges: true, landlock, landlock_abi: 2 };
        let held: Vec<(String, bool)> = report
            .self_tests()
            .into_iter()
            .map(|SelfTest { rule, held }| (rule.to_string(), held))
            .collect();
        assert_eq!(held, expected.map(|(rule, held)| (rule.to_owned(), held)));
    };
    let [root, privileges] = ["jail.not-root", "jail.no-new-privileges"];
    // A regular user owns files that a hypervisor could read without Landlock.
    check(1000, LandlockCoverage::None, [(root, true), (privileges, true), ("jail.files", false)]);
    check(
        1000,
        LandlockCoverage::Partial,
        [(root, true), (privileges, true), ("jail.files", true)],
    );
    check(
        super::NOBODY,
        LandlockCoverage::None,
        [(root, true), (privileges, true), ("jail.files", true)],
    );
}
