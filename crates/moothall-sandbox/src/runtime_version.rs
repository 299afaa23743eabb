//! Versions of container runtimes with known escapes. Distributions fix older versions without changing
//! their number, so an old version is a reason to warn and not to refuse.

/// The first runc without CVE-2024-21626: a descriptor of the host leaks into the container, and a
/// working directory below it is outside of the container.
const RUNC_LEAKED_DESCRIPTOR: RuncVersion = RuncVersion(1, 1, 12);

/// The first runc of each branch without CVE-2025-31133, CVE-2025-52565 and CVE-2025-52881: races while
/// masked paths are mounted give a container write access to files of the host's `/proc`. Older branches
/// than the first were not fixed, newer ones than the last were never open.
const RUNC_MASKED_PATHS: [RuncVersion; 2] = [RuncVersion(1, 2, 8), RuncVersion(1, 3, 3)];

/// The day of the oldest runsc that the tests of sandboxes ran on.
pub(crate) const RUNSC_MINIMUM: u32 = 20_240_729;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RuncVersion(u32, u32, u32);

impl RuncVersion {
    /// The numbers at the start of `1.1.5+ds1`.
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

/// What is known to be open in this version of an engine, as `moothall doctor` and results say it;
/// nothing where nothing is known, or where the engine does not say its version in numbers.
pub fn version_warning(engine: &str, version: &str) -> Option<String> {
    // Behind it stands what we found out ourselves.
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
        "runc {version} is older than {fixed}: {} may be open unless your distribution fixed them",
        open.join(", ")
    ))
}

fn runsc_warning(version: &str) -> Option<String> {
    let date = release_date(version)?;
    (date < RUNSC_MINIMUM).then(|| {
        format!(
            "runsc {version} is older than {RUNSC_MINIMUM}, the oldest that was tested: update it"
        )
    })
}

/// The day of a version of gVisor such as `release-20240729.0` or `0.0~20240729.0`.
pub(crate) fn release_date(version: &str) -> Option<u32> {
    let digits = version.split(|c: char| !c.is_ascii_digit());
    digits.filter(|part| part.len() == 8).find_map(|part| part.parse().ok())
}

#[cfg(test)]
#[path = "runtime_version_tests.rs"]
mod tests;
