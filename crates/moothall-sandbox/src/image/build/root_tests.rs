use super::*;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, text).unwrap();
}

fn paths(root: &Path) -> Vec<String> {
    tree::list(root).unwrap().into_iter().map(|entry| entry.path).collect()
}

#[test]
fn the_root_file_system_is_built_as_the_recipe_says() {
    let root = tempfile::tempdir().unwrap();
    for path in [
        "dev/null",
        "etc/matplotlibrc",
        "usr/lib/python3/dist-packages/numpy/core/tests/a.py",
        "usr/lib/python3/dist-packages/numpy/core/b.py",
        "usr/share/doc/dash/changelog.gz",
        "usr/share/doc/dash/copyright",
        "usr/share/doc/empty/README",
        "usr/share/man/man1/dash.1",
    ] {
        write(root.path(), path, "old");
    }
    let set = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let recipe = RootRecipe {
        folders: set(&["dev", "workspace"]),
        remove: set(&["usr/share/man", "not/there"]),
        remove_folders_named: set(&["tests"]),
        links: [("usr/lib/libblas.so.3".to_owned(), "blas/libblas.so.3".to_owned())].into(),
        files: [("etc/matplotlibrc".to_owned(), "backend: Agg\n".to_owned())].into(),
        ..RootRecipe::default()
    };
    change(root.path(), &recipe).unwrap();
    let expected = [
        "dev",
        "etc",
        "etc/matplotlibrc",
        "usr",
        "usr/lib",
        "usr/lib/libblas.so.3",
        "usr/lib/python3",
        "usr/lib/python3/dist-packages",
        "usr/lib/python3/dist-packages/numpy",
        "usr/lib/python3/dist-packages/numpy/core",
        "usr/lib/python3/dist-packages/numpy/core/b.py",
        "usr/share",
        "usr/share/doc",
        "usr/share/doc/dash",
        "usr/share/doc/dash/copyright",
        "workspace",
    ];
    assert_eq!(paths(root.path()), expected);
    let text = fs_err::read_to_string(root.path().join("etc/matplotlibrc")).unwrap();
    assert_eq!(text, "backend: Agg\n");
}

#[test]
fn python_modules_are_files_extensions_and_packages() {
    let root = tempfile::tempdir().unwrap();
    for path in [
        "six.py",
        "_brotli.cpython-311-x86_64-linux-gnu.so",
        "numpy/__init__.py",
        "mpl_toolkits/axes_grid1/axes.py",
        "numpy-1.24.2.egg-info/PKG-INFO",
        "numpy-1.24.2.egg-info/setup.py",
        "only_data/table.csv",
        "__pycache__/six.cpython-311.pyc",
        "matplotlib-3.6.3-nspkg.pth",
    ] {
        write(root.path(), path, "");
    }
    let found = python_modules(root.path()).unwrap();
    assert_eq!(found, ["_brotli", "mpl_toolkits", "numpy", "six"]);
    assert_eq!(python_modules(&root.path().join("none")).unwrap(), [] as [String; 0]);
}
