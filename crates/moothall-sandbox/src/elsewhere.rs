//! What stands in for the walls of Linux on other systems: the same names, and the answer that
//! there are none.

/// Walls around a process of ours.
pub mod confine {
    use std::path::Path;

    use crate::SandboxError;

    /// Says that the walls cannot be built.
    pub fn confine(_workspace: &Path, _state: &Path) -> Result<Vec<&'static str>, SandboxError> {
        Err(SandboxError::NeedsLinux { what: "a server behind walls".to_owned() })
    }
}

/// Walls around a hypervisor.
pub mod jail {
    use std::convert::Infallible;
    use std::ffi::OsString;
    use std::path::PathBuf;

    use crate::SandboxError;

    /// How the jail would be started.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct JailCommand {
        /// The program.
        pub program: PathBuf,
        /// Its first arguments.
        pub args: Vec<String>,
    }

    /// Says that the walls cannot be built.
    pub fn enter(_args: impl IntoIterator<Item = OsString>) -> Result<Infallible, SandboxError> {
        Err(SandboxError::NeedsLinux { what: "a jail".to_owned() })
    }
}

/// Containers.
pub(crate) mod oci {
    use std::path::PathBuf;

    use crate::EngineName;

    /// No runtime is known, so no record of a container is believed.
    pub(crate) fn program(_name: EngineName) -> Option<PathBuf> {
        None
    }
}
