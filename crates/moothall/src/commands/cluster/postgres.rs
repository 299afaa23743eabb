//! The PostgreSQL server of a cluster.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use moothall_core::Sha256Hex;

use super::managed_process::ClusterProcess;
use super::plan;
use super::restate::ensure_port_free;
use crate::error::CliError;

const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Accounts for PostgreSQL when moothall runs as root, because PostgreSQL refuses to run as root.
const ACCOUNTS: [&str; 2] = ["postgres", "nobody"];

/// Used as root if the PostgreSQL account cannot enter the cluster's directory.
const ROOT_DATA_PARENT: &str = "/var/lib";

const DATA: &str = "data";

/// Passes the password to `initdb`; removed afterwards.
const PASSWORD: &str = "password";

#[derive(Debug)]
pub(crate) struct PostgresServer<'a> {
    pub(crate) part: ClusterProcess,
    /// Directory of the PostgreSQL programs.
    programs: &'a Path,
    database: &'a plan::ClusterDatabase,
    files: PostgresFiles,
}

/// Directory and owner of the database files.
#[derive(Debug)]
pub(crate) struct PostgresFiles {
    pub(crate) folder: PathBuf,
    /// `None` if PostgreSQL runs as the current user.
    account: Option<PostgresAccount>,
}

#[derive(Debug, Clone, Copy)]
struct PostgresAccount {
    user: u32,
    group: u32,
}

impl PostgresFiles {
    pub(crate) fn find(cluster: &Path) -> Result<Self, CliError> {
        let folder = cluster.join("postgres");
        if !rustix::process::geteuid().is_root() {
            return Ok(Self { folder, account: None });
        }
        let account =
            ACCOUNTS.iter().find_map(|name| PostgresAccount::find(name)).ok_or_else(|| {
                CliError::failed(
                    "PostgreSQL cannot run as root, and neither account exists: `postgres`, `nobody`",
                )
                .with_hint("create an account named `postgres`, or run moothall as another user")
            })?;
        let name = Sha256Hex::of(cluster.as_os_str().as_encoded_bytes()).to_string();
        let name = name.get(..12).unwrap_or_default();
        let fallback_dir = Path::new(ROOT_DATA_PARENT).join(format!("moothall-cluster-{name}"));
        // An existing database stays where it is.
        let folder = match (folder.join(DATA).exists(), fallback_dir.join(DATA).exists()) {
            (false, true) => fallback_dir,
            (false, false) if !account.can_enter(cluster) => fallback_dir,
            _ => folder,
        };
        Ok(Self { folder, account: Some(account) })
    }

    fn data(&self) -> PathBuf {
        self.folder.join(DATA)
    }

    fn set_owner(&self, path: &Path) -> std::io::Result<()> {
        match self.account {
            Some(PostgresAccount { user, group }) => {
                fs_err::os::unix::fs::chown(path, Some(user), Some(group))
            }
            None => Ok(()),
        }
    }
}

impl PostgresAccount {
    fn find(name: &str) -> Option<Self> {
        let id = |of: &str| -> Option<u32> {
            let output = Command::new("id").args([of, name]).stderr(Stdio::null()).output().ok()?;
            String::from_utf8(output.stdout).ok()?.trim().parse().ok()
        };
        Some(Self { user: id("-u")?, group: id("-g")? })
    }

    fn can_enter(self, folder: &Path) -> bool {
        let mut test = Command::new("test");
        self.apply_to(test.arg("-x").arg(folder).stdin(Stdio::null()));
        test.status().is_ok_and(|status| status.success())
    }

    /// Setting the uid as root also drops the supplementary groups.
    fn apply_to(self, command: &mut Command) {
        command.uid(self.user).gid(self.group);
    }
}

impl<'a> PostgresServer<'a> {
    pub(crate) fn find(
        cluster: &Path,
        programs: &'a Path,
        database: &'a plan::ClusterDatabase,
    ) -> Result<Self, CliError> {
        let (part, files) = (part(cluster), PostgresFiles::find(cluster)?);
        Ok(Self { part, programs, database, files })
    }

    /// Creates the database if needed and starts the server if it is not running.
    pub(crate) async fn start(&self) -> Result<(), CliError> {
        if self.part.is_alive() {
            return Ok(());
        }
        if !self.files.data().exists() {
            self.initialize()?;
        }
        ensure_port_free(self.database.port)?;
        let (data, port) = (self.files.data(), self.database.port);
        let arguments = [
            "-D".into(),
            data.into_os_string(),
            // No Unix socket either: every connection needs the password.
            "-clisten_addresses=127.0.0.1".into(),
            "-cunix_socket_directories=".into(),
            format!("-cport={port}").into(),
        ];
        let program = self.programs.join("postgres");
        self.part.start(&program, arguments, |command| self.isolate_command(command)).await
    }

    /// Creates the data directory under another name and renames it, so that an interrupted
    /// `initdb` is never mistaken for a complete one.
    fn initialize(&self) -> Result<(), CliError> {
        let failed =
            |message: String| CliError::failed("cannot create the database").with_hint(message);
        let folder = &self.files.folder;
        let io_failed = |error: std::io::Error| failed(error.to_string());
        fs_err::create_dir_all(folder).map_err(io_failed)?;
        for left in fs_err::read_dir(folder).map_err(io_failed)? {
            // Left over from an interrupted start.
            let _ = fs_err::remove_dir_all(left.map_err(io_failed)?.path());
        }
        plan::write_private(folder, PASSWORD, self.database.password.as_bytes())?;
        let (new, password) =
            (folder.join(format!("new-{}", std::process::id())), folder.join(PASSWORD));
        for path in [folder, &password] {
            self.files.set_owner(path).map_err(io_failed)?;
        }
        let mut initdb = Command::new(self.programs.join("initdb"));
        initdb.arg("--pgdata").arg(&new).arg("--pwfile").arg(&password).args([
            "--username=moothall",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
        ]);
        self.isolate_command(&mut initdb);
        let initdb_result = run_command(&mut initdb).map_err(failed);
        fs_err::remove_file(password).map_err(io_failed)?;
        initdb_result?;
        fs_err::rename(&new, self.files.data()).map_err(io_failed)
    }

    /// Waits until the server accepts connections and creates the database in it.
    pub(crate) async fn wait_until_healthy(&self) -> Result<(), CliError> {
        self.part.wait_until_healthy(START_TIMEOUT, async || self.is_healthy()).await?;
        let failed =
            |message: String| CliError::failed("cannot create the database").with_hint(message);
        let exists_query = "SELECT 1 FROM pg_database WHERE datname = 'moothall'";
        let mut psql = self.client("psql");
        psql.args(["-qAt", "--dbname=postgres", "--command", exists_query]);
        if run_command(&mut psql).map_err(failed)?.trim().is_empty() {
            run_command(self.client("createdb").arg("moothall")).map_err(failed)?;
        }
        Ok(())
    }

    pub(crate) fn is_healthy(&self) -> bool {
        run_command(self.client("pg_isready").arg("--dbname=postgres")).is_ok()
    }

    fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        let port = self.database.port;
        command.args(["--host=127.0.0.1", "--username=moothall", &format!("--port={port}")]);
        self.isolate_command(&mut command);
        command.env("PGPASSWORD", &self.database.password);
        command
    }

    /// Runs a command as the PostgreSQL account, in a directory that it can access, without the
    /// user's `PG*` variables.
    fn isolate_command(&self, command: &mut Command) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.current_dir("/").env_clear().env("PATH", path);
        if let Some(account) = self.files.account {
            account.apply_to(command);
        }
    }
}

pub(crate) fn part(cluster: &Path) -> ClusterProcess {
    ClusterProcess::new(cluster, "postgres")
}

/// Standard output of a command, or its standard error if it fails.
fn run_command(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
