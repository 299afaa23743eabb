use super::*;

fn write_module(folder: &Path, name: &str, depends: &str) {
    let module = format!("\x7fELF\0license=GPL\0depends={depends}\0name={name}\0");
    fs_err::write(folder.join(format!("{name}.ko")), module).unwrap();
}

fn recipe(modules: &[&str]) -> KernelRecipe {
    KernelRecipe {
        package: "linux-image".to_owned(),
        without: BTreeSet::new(),
        modules: modules.iter().map(|name| (*name).to_owned()).collect(),
        folders: BTreeSet::new(),
    }
}

#[test]
fn modules_are_loaded_after_the_modules_they_depend_on() {
    // Regression: Debian's kernel 6.1.0-55 reversed the dependency between virtio and virtio_ring,
    // and the fixed order could not be loaded.
    let folder = tempfile::tempdir().unwrap();
    write_module(folder.path(), "virtio", "virtio_ring");
    write_module(folder.path(), "virtio_ring", "");
    write_module(folder.path(), "virtio-blk", "virtio,crc32");
    fs_err::write(folder.path().join("modules.builtin"), "kernel/lib/crc32.ko\n").unwrap();
    let archive = modules(folder.path(), &recipe(&["virtio_blk", "virtio"])).unwrap();
    let text = String::from_utf8_lossy(&archive);
    assert!(text.contains("virtio_ring.ko\nvirtio.ko\nvirtio_blk.ko\n"), "{text}");
}

#[test]
fn a_missing_dependency_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    write_module(folder.path(), "a", "missing");
    fs_err::write(folder.path().join("modules.builtin"), "").unwrap();
    let error = modules(folder.path(), &recipe(&["a"])).unwrap_err();
    assert_eq!(error, "the kernel has no module `missing`");
}
