//! The platform of a binary, and the glibc version that it needs.

use std::fmt;

use anyhow::{Context as _, Result, bail};
use object::elf::FileHeader64;
use object::read::elf::{FileHeader as _, SectionHeader as _};
use object::{Architecture, BinaryFormat, Endianness, Object as _};

/// The oldest glibc that packages support: RHEL 7, Amazon Linux 2 and everything newer.
const OLDEST_GLIBC: GlibcVersion = GlibcVersion(2, 17);

/// A version such as 2.17. Patch levels such as 2.2.5 are older than the oldest version above and
/// are compared by their first two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GlibcVersion(u32, u32);

impl fmt::Display for GlibcVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// The names of one platform in the different package formats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackagePlatform {
    pub(crate) target: &'static str,
    pub(crate) npm_os: &'static str,
    pub(crate) npm_cpu: &'static str,
    pub(crate) deb: &'static str,
    pub(crate) rpm: &'static str,
    wheel: &'static str,
    /// The glibc that the binary needs; `None` if it is static or not for Linux.
    pub(crate) glibc: Option<GlibcVersion>,
}

const PLATFORMS: [PackagePlatform; 4] = [
    PackagePlatform {
        target: "x86_64-unknown-linux-gnu",
        npm_os: "linux",
        npm_cpu: "x64",
        deb: "amd64",
        rpm: "x86_64",
        wheel: "manylinux_2_17_x86_64.manylinux2014_x86_64",
        glibc: None,
    },
    PackagePlatform {
        target: "aarch64-unknown-linux-gnu",
        npm_os: "linux",
        npm_cpu: "arm64",
        deb: "arm64",
        rpm: "aarch64",
        wheel: "manylinux_2_17_aarch64.manylinux2014_aarch64",
        glibc: None,
    },
    PackagePlatform {
        target: "x86_64-apple-darwin",
        npm_os: "darwin",
        npm_cpu: "x64",
        deb: "",
        rpm: "",
        wheel: "macosx_10_12_x86_64",
        glibc: None,
    },
    PackagePlatform {
        target: "aarch64-apple-darwin",
        npm_os: "darwin",
        npm_cpu: "arm64",
        deb: "",
        rpm: "",
        wheel: "macosx_11_0_arm64",
        glibc: None,
    },
];

impl PackagePlatform {
    /// Reads the platform from the header of a binary. Refuses a binary that needs a glibc newer
    /// than 2.17, unless `any_glibc`.
    pub(crate) fn of(binary: &[u8], any_glibc: bool) -> Result<Self> {
        let file = object::File::parse(binary).context("not a program")?;
        let target = match (file.format(), file.architecture()) {
            (BinaryFormat::Elf, Architecture::X86_64) => "x86_64-unknown-linux-gnu",
            (BinaryFormat::Elf, Architecture::Aarch64) => "aarch64-unknown-linux-gnu",
            (BinaryFormat::MachO, Architecture::X86_64) => "x86_64-apple-darwin",
            (BinaryFormat::MachO, Architecture::Aarch64) => "aarch64-apple-darwin",
            (format, architecture) => bail!("no packages for {format:?} on {architecture:?}"),
        };
        let known = PLATFORMS.into_iter().find(|platform| platform.target == target);
        let mut platform = known.context("platform without a row")?;
        if file.format() == BinaryFormat::Elf {
            let needed = glibc_versions(binary)?;
            let newer: Vec<String> = needed
                .iter()
                .filter(|version| **version > OLDEST_GLIBC)
                .map(|version| format!("GLIBC_{version}"))
                .collect();
            if !newer.is_empty() && !any_glibc {
                bail!(
                    "the binary needs {}, newer than GLIBC_{OLDEST_GLIBC}\nhint: build it with `cargo zigbuild --target {target}.{OLDEST_GLIBC}`, or pass `--any-glibc`",
                    newer.join(", ")
                );
            }
            platform.glibc = needed.into_iter().max();
        }
        Ok(platform)
    }

    pub(crate) fn is_linux(&self) -> bool {
        self.npm_os == "linux"
    }

    /// The platform tag of a wheel. A binary that needs a newer glibc gets the tag that no package
    /// index accepts.
    pub(crate) fn wheel_tag(&self) -> String {
        match self.glibc {
            Some(glibc) if glibc > OLDEST_GLIBC => format!("linux_{}", self.rpm),
            _ => self.wheel.to_owned(),
        }
    }

    pub(crate) fn npm_package(&self) -> String {
        npm_package(self.npm_os, self.npm_cpu)
    }
}

/// The packages that contain binaries. npm installs the matching one.
pub(crate) fn npm_packages() -> impl Iterator<Item = String> {
    PLATFORMS.into_iter().map(|platform| platform.npm_package())
}

fn npm_package(os: &str, cpu: &str) -> String {
    format!("@moothall/{os}-{cpu}")
}

/// All targets that packages exist for.
pub(crate) fn targets() -> impl Iterator<Item = &'static str> {
    PLATFORMS.into_iter().map(|platform| platform.target)
}

/// The glibc versions that a dynamic ELF file requires, in ascending order.
fn glibc_versions(elf: &[u8]) -> Result<Vec<GlibcVersion>> {
    let header = FileHeader64::<Endianness>::parse(elf)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, elf)?;
    let mut versions = Vec::new();
    if let Some((mut needs, link)) = sections.gnu_verneed(endian, elf)? {
        let names = sections.section(link)?.strings(endian, elf)?.context("no version names")?;
        while let Some((_, mut auxiliary)) = needs.next()? {
            while let Some(version) = auxiliary.next()? {
                let name = version.name(endian, names)?;
                let name = std::str::from_utf8(name)?;
                if let Some(number) = name.strip_prefix("GLIBC_") {
                    versions.push(parse_version(number)?);
                }
            }
        }
    }
    versions.sort_unstable();
    versions.dedup();
    Ok(versions)
}

fn parse_version(text: &str) -> Result<GlibcVersion> {
    let mut numbers = text.split('.').map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok(GlibcVersion(major, minor)),
        // `GLIBC_PRIVATE` is internal to one glibc build, so no other version fits.
        _ => bail!("the binary needs GLIBC_{text}, which is not a version"),
    }
}
