//! Opens the web UI in a browser.
//!
//! Command-line arguments are visible to every user of the machine, and a login link signs in the
//! first person who opens it. So the browser opens a private file that redirects to the link.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempPath;

use crate::terminal::{self, DIM};

/// Opens a URL that is not secret.
pub(crate) fn open(url: &str) -> Option<TempPath> {
    if !start_browser(url.as_ref()) {
        terminal::note(&format!("{DIM}cannot start a browser; open {url}{DIM:#}\n"));
    }
    None
}

/// Opens a file of the user.
pub(crate) fn open_file(path: &Path) {
    if !start_browser(path.as_os_str()) {
        terminal::note(&format!("{DIM}cannot start a browser; open {}{DIM:#}\n", path.display()));
    }
}

/// Opens a secret link through a file in `folder` that only this user can read. Dropping the
/// returned path removes the file.
pub(crate) fn open_privately(link: &str, folder: &Path) -> Option<TempPath> {
    let file = write_redirect(link, folder).ok();
    let is_started = file.as_ref().is_some_and(|file| start_browser(file.as_os_str()));
    if !is_started {
        terminal::note(&format!("{DIM}cannot start a browser; open the link above{DIM:#}\n"));
    }
    file
}

fn write_redirect(link: &str, folder: &Path) -> std::io::Result<TempPath> {
    fs_err::create_dir_all(folder)?;
    // Created with mode 0600 and an unguessable name.
    let mut file =
        tempfile::Builder::new().prefix("sign-in-").suffix(".html").tempfile_in(folder)?;
    let link = link.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    writeln!(
        file,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0;url={link}\"><title>Moothall</title></head>\
         <body><p><a href=\"{link}\">Sign in to Moothall</a></p></body></html>"
    )?;
    Ok(file.into_temp_path())
}

fn start_browser(target: &OsStr) -> bool {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(opener);
    command.arg(target).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}
