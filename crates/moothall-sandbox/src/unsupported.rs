//! Stubs for the Linux-only modules on other systems. They have the same names and report that
//! Linux is required.

pub mod confine {
    use std::path::Path;

    use crate::SandboxError;

    /// Always fails: confinement needs Linux.
    pub fn confine(_workspace: &Path, _state: &Path) -> Result<Vec<&'static str>, SandboxError> {
        Err(SandboxError::NeedsLinux { what: "a confined server".to_owned() })
    }
}

pub mod jail {
    use std::convert::Infallible;
    use std::ffi::OsString;
    use std::path::PathBuf;

    use crate::SandboxError;

    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct JailCommand {
        pub program: PathBuf,
        /// Arguments that come before those of the jailed program.
        pub args: Vec<String>,
    }

    /// Always fails: the jail needs Linux.
    pub fn enter(_args: impl IntoIterator<Item = OsString>) -> Result<Infallible, SandboxError> {
        Err(SandboxError::NeedsLinux { what: "a jail".to_owned() })
    }
}

pub(crate) mod oci {
    use std::path::PathBuf;

    use crate::EngineName;

    /// Returns no runtime, so container records are never acted on.
    pub(crate) fn program(_name: EngineName) -> Option<PathBuf> {
        None
    }
}
