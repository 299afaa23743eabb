//! The install script and the Homebrew formula. Both contain the checksums of the tarballs, so a
//! changed download is refused.

use anyhow::{Result, bail};

use super::archives::tarball_name;
use super::platform::targets;
use super::{PackageKind, PackageOptions, SUMMARY, VERSION, WrittenPackage, sha256};

const INSTALL_SCRIPT: &str = "install.sh";
const FORMULA: &str = "moothall.rb";

pub(crate) fn write_install_script(options: &PackageOptions<'_>) -> Result<WrittenPackage> {
    let sums: String = tarballs(options)?
        .into_iter()
        .map(|(target, sum)| format!("    {target}) sum={sum} ;;\n"))
        .collect();
    let script = fs_err::read_to_string(options.root.join("deploy/package/install.sh"))?
        .replace("@VERSION@", VERSION)
        .replace("@URL@", &release_url(options))
        .replace("    @SUMS@\n", &sums);
    fs_err::write(options.out.join(INSTALL_SCRIPT), script)?;
    let name = INSTALL_SCRIPT.to_owned();
    Ok(WrittenPackage { name, kind: PackageKind::InstallScript, has_binary: false })
}

pub(crate) fn write_formula(options: &PackageOptions<'_>) -> Result<WrittenPackage> {
    let tarballs = tarballs(options)?;
    let mut systems = String::new();
    for (system, os) in [("macos", "apple-darwin"), ("linux", "unknown-linux-gnu")] {
        let mut rows = String::new();
        for (cpu, arch) in [("arm", "aarch64"), ("intel", "x86_64")] {
            let target = format!("{arch}-{os}");
            if let Some((_, sum)) = tarballs.iter().find(|(found, _)| *found == target) {
                let url = format!("{}/{}", release_url(options), tarball_name(&target));
                rows.push_str(&format!(
                    "    on_{cpu} do\n      url \"{url}\"\n      sha256 \"{sum}\"\n    end\n"
                ));
            }
        }
        if !rows.is_empty() {
            systems.push_str(&format!("  on_{system} do\n{rows}  end\n"));
        }
    }
    let formula = fs_err::read_to_string(options.root.join("deploy/package/moothall.rb"))?
        .replace("@VERSION@", VERSION)
        .replace("@SUMMARY@", SUMMARY)
        .replace("@URL@", options.repository)
        .replace("  @SYSTEMS@\n", &systems);
    fs_err::write(options.out.join(FORMULA), formula)?;
    let name = FORMULA.to_owned();
    Ok(WrittenPackage { name, kind: PackageKind::Homebrew, has_binary: false })
}

fn release_url(options: &PackageOptions<'_>) -> String {
    format!("{}/releases/download/v{VERSION}", options.repository)
}

/// The targets and checksums of the tarballs in the output directory.
fn tarballs(options: &PackageOptions<'_>) -> Result<Vec<(&'static str, String)>> {
    let mut found = Vec::new();
    for target in targets() {
        let path = options.out.join(tarball_name(target));
        if path.exists() {
            found.push((target, sha256(&fs_err::read(path)?)));
        }
    }
    if found.is_empty() {
        bail!(
            "no tarballs in {}\nhint: write one with `cargo xtask package --binary FILE tarball`",
            options.out.display()
        );
    }
    Ok(found)
}
