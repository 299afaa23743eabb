//! Known vulnerabilities in container runtimes. Distributions fix old versions without changing the
//! number, so an old version causes a warning and not an error.

/// The first runc without CVE-2024-21626: a leaked host file descriptor lets a container's working
/// directory be outside the container.
const RUNC_LEAKED_DESCRIPTOR: RuncVersion = RuncVersion(1, 1, 12);

/// The first runc of each branch without CVE-2025-31133, CVE-2025-52565 and CVE-2025-52881: races
/// while masked paths are mounted give a container write access to files in the host's `/proc`.
/// Branches before the first were not fixed; branches after the last are not affected.
const RUNC_MASKED_PATHS: [RuncVersion; 2] = [RuncVersion(1, 2, 8), RuncVersion(1, 3, 3)];

/// Release date of the oldest runsc that the sandbox tests ran on.
pub(crate) const RUNSC_MINIMUM: u32 = 20_240_729;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RuncVersion(u32, u32, u32);

impl RuncVersion {
    /// Parses the leading numbers of a version such as `1.1.5+ds1`.
    fn parse(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let mut numbers = text[..end].split('.').map(str::parse::<u32>);
        let mut next = || numbers.next()?.ok();
        let (major, minor) = (next()?, next()?);
        Some(Self(major, minor, next().unwrap_or(0)))
    }

    fn has_open_masked_paths(self) -> bool {
        let branch = |version: &Self| (version.0, version.1);
        let fixed = RUNC_MASKED_PATHS.iter().find(|fixed| branch(fixed) >= branch(&self));
        fixed.is_some_and(|fixed| self < *fixed)
    }
}

impl std::fmt::Display for RuncVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// Warns about known vulnerabilities in this engine version, for `moothall doctor` and results.
/// `None` if none are known or the version has no numbers.
pub fn version_warning(engine: &str, version: &str) -> Option<String> {
    // The engine's version is followed by our own remarks.
    let version = version.split(' ').next().unwrap_or(version);
    match engine {
        "runc" => runc_warning(version),
        "runsc" => runsc_warning(version),
        _ => None,
    }
}

fn runc_warning(version: &str) -> Option<String> {
    let found = RuncVersion::parse(version)?;
    if !found.has_open_masked_paths() {
        return None;
    }
    let [fixed, newer] = RUNC_MASKED_PATHS;
    let fixed = if found < fixed { fixed } else { newer };
    let mut open = vec!["CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881"];
    if found < RUNC_LEAKED_DESCRIPTOR {
        open.insert(0, "CVE-2024-21626");
    }
    Some(format!(
        "runc {version} is older than {fixed}: update it, unless your distribution fixed {}",
        open.join(", ")
    ))
}

fn runsc_warning(version: &str) -> Option<String> {
    let date = release_date(version)?;
    (date < RUNSC_MINIMUM).then(|| {
        format!(
            "runsc {version} is older than {RUNSC_MINIMUM}, the oldest tested release; update it"
        )
    })
}

/// The release date in a gVisor version such as `release-20240729.0` or `0.0~20240729.0`.
pub(crate) fn release_date(version: &str) -> Option<u32> {
    let digits = version.split(|c: char| !c.is_ascii_digit());
    digits.filter(|part| part.len() == 8).find_map(|part| part.parse().ok())
}

#[cfg(test)]
#[path = "runtime_version_tests.rs"]
mod tests;
