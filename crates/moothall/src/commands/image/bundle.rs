//! `moothall image export` and `import`: saves images to one file and loads them.

use std::cell::Cell;
use std::io::{self, BufReader, BufWriter, IsTerminal as _, Read, Write as _};
use std::path::Path;

use fs_err::File;
use moothall_sandbox::image::{BundleEntry, ImageRecipe, ImageStore};
use serde_json::json;
use tempfile::NamedTempFile;

use super::image_error;
use crate::args::image::{ImageExportArgs, ImageImportArgs};
use crate::error::{CliError, CliExit};
use crate::release_images;
use crate::terminal::{self, GREEN};
use crate::work_progress::WorkProgress;

pub(crate) fn export(store: &ImageStore, args: &ImageExportArgs) -> anyhow::Result<CliExit> {
    let built = || ImageRecipe::names().filter(|name| store.find(name).is_ok()).map(str::to_owned);
    let names = if args.names.is_empty() { built().collect() } else { args.names.clone() };
    if names.is_empty() {
        return Err(CliError::usage("no images to export")
            .with_hint("create them with `moothall image build`")
            .into());
    }
    if args.out.symlink_metadata().is_ok() {
        return Err(already_exists(&args.out).into());
    }
    let unwritable = |error: io::Error| {
        CliError::failed(format!("cannot write {}", args.out.display())).with_source(error)
    };
    let folder = args.out.parent().filter(|folder| !folder.as_os_str().is_empty());
    let temp_file =
        NamedTempFile::new_in(folder.unwrap_or_else(|| Path::new("."))).map_err(unwritable)?;
    let progress = WorkProgress::start("exporting images", args.json);
    let bytes = names.iter().filter_map(|name| Some(store.find(name).ok()?.bytes)).sum();
    progress.step_bytes("exporting images", bytes);
    let mut file = BufWriter::new(temp_file);
    let images = store.export(&names, &mut progress.counted(&mut file)).map_err(image_error)?;
    file.flush().map_err(unwritable)?;
    let temp_file = file.into_inner().map_err(|error| unwritable(error.into_error()))?;
    temp_file.as_file().sync_all().map_err(unwritable)?;
    drop(progress);
    temp_file.persist_noclobber(&args.out).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => already_exists(&args.out),
        _ => unwritable(error.error),
    })?;
    print_images(&images, args.json, "exported")
}

pub(crate) fn import(store: &ImageStore, args: &ImageImportArgs) -> anyhow::Result<CliExit> {
    let from: Box<dyn Read> = if args.file.as_os_str() == "-" {
        if io::stdin().is_terminal() {
            return Err(CliError::usage("no bundle on standard input")
                .with_hint("pipe a bundle in, or pass its file name instead of `-`")
                .into());
        }
        Box::new(io::stdin())
    } else {
        let file = File::open(&args.file).map_err(|error| {
            CliError::usage(format!("cannot read {}", args.file.display())).with_source(error)
        })?;
        Box::new(BufReader::new(file))
    };
    let progress = WorkProgress::start("importing images", args.json);
    let bytes = args.file.metadata().map_or(0, |file| file.len());
    progress.step_bytes("importing images", bytes);
    let unexpected = Cell::new(None);
    let is_accepted = |image: &BundleEntry| {
        let is_expected = args.any_digest
            || args.digest.contains(&image.sha256)
            || release_images::digest_of(&image.name) == Some(image.sha256);
        if !is_expected {
            unexpected.set(Some(image.sha256));
        }
        is_expected
    };
    let imported = store.import(progress.counted(from), is_accepted);
    drop(progress);
    let images = imported.map_err(|error| {
        let hint = match unexpected.get() {
            Some(digest) => format!(
                "if the machine that exported it printed the same digest, pass `--digest {digest}`"
            ),
            None => {
                "if the bundle is damaged, create it again with `moothall image export`".to_owned()
            }
        };
        image_error(error).with_hint(hint)
    })?;
    print_images(&images, args.json, "imported and verified")
}

fn print_images(images: &[BundleEntry], is_json: bool, what: &str) -> anyhow::Result<CliExit> {
    if is_json {
        terminal::print(&format!("{:#}\n", json!({ "images": images })))?;
        return Ok(CliExit::Fine);
    }
    for BundleEntry { name, sha256 } in images {
        terminal::print(&format!("{GREEN}ok{GREEN:#}  {name} {what}: {sha256}\n"))?;
    }
    Ok(CliExit::Fine)
}

fn already_exists(file: &Path) -> CliError {
    CliError::usage(format!("{} already exists", file.display()))
        .with_hint("choose another name; `moothall image export` does not overwrite files")
}
