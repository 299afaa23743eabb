//! `moothall image export` and `import`: images as one file.

use std::io::{self, BufReader, BufWriter, IsTerminal as _, Read, Write as _};
use std::path::Path;

use fs_err::File;
use moothall_sandbox::image::{Bundled, ImageStore, Recipe};
use serde_json::json;
use tempfile::NamedTempFile;

use super::words;
use crate::args::image::{ImageExportArgs, ImageImportArgs};
use crate::error::{CliError, Exit};
use crate::terminal::{self, GREEN};

pub(super) fn export(store: &ImageStore, args: &ImageExportArgs) -> anyhow::Result<Exit> {
    let built = || Recipe::names().filter(|name| store.find(name).is_ok()).map(str::to_owned);
    let names = if args.names.is_empty() { built().collect() } else { args.names.clone() };
    if names.is_empty() {
        return Err(CliError::usage("there are no images to export")
            .with_hint("`moothall image build` makes them")
            .into());
    }
    if args.out.symlink_metadata().is_ok() {
        return Err(exists(&args.out).into());
    }
    let unwritable = |error: io::Error| {
        CliError::failed(format!("{} cannot be written", args.out.display())).with_source(error)
    };
    let folder = args.out.parent().filter(|folder| !folder.as_os_str().is_empty());
    let draft =
        NamedTempFile::new_in(folder.unwrap_or_else(|| Path::new("."))).map_err(unwritable)?;
    let mut file = BufWriter::new(draft);
    let images = store.export(&names, &mut file).map_err(words)?;
    file.flush().map_err(unwritable)?;
    let draft = file.into_inner().map_err(|error| unwritable(error.into_error()))?;
    draft.as_file().sync_all().map_err(unwritable)?;
    draft.persist_noclobber(&args.out).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => exists(&args.out),
        _ => unwritable(error.error),
    })?;
    tell(&images, args.json, "is in the bundle")
}

pub(super) fn import(store: &ImageStore, args: &ImageImportArgs) -> anyhow::Result<Exit> {
    let from: Box<dyn Read> = if args.file.as_os_str() == "-" {
        if io::stdin().is_terminal() {
            return Err(CliError::usage("there is no bundle on standard input").into());
        }
        Box::new(io::stdin())
    } else {
        let file = File::open(&args.file).map_err(|error| {
            CliError::usage(format!("{} cannot be read", args.file.display())).with_source(error)
        })?;
        Box::new(BufReader::new(file))
    };
    let images = store.import(from).map_err(words)?;
    tell(&images, args.json, "is imported, and every byte is what its digest says")
}

fn tell(images: &[Bundled], is_json: bool, what: &str) -> anyhow::Result<Exit> {
    if is_json {
        terminal::print(&format!("{:#}\n", json!({ "images": images })))?;
        return Ok(Exit::Fine);
    }
    for Bundled { name, sha256 } in images {
        terminal::print(&format!("{GREEN}ok{GREEN:#}  {name} {what}: {sha256}\n"))?;
    }
    Ok(Exit::Fine)
}

fn exists(file: &Path) -> CliError {
    CliError::usage(format!("{} exists already", file.display()))
        .with_hint("choose another name: a bundle never replaces a file")
}
