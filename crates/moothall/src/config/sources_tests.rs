use super::*;

/// A directory with a configuration directory and a working directory, and the matching
/// environment.
struct Disk {
    folder: tempfile::TempDir,
    environment: Vec<(&'static str, String)>,
}

impl Disk {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        let home = folder.path().to_str().unwrap().to_owned();
        Self { folder, environment: vec![("HOME", home)] }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn set(mut self, name: &'static str, path: &str) -> Self {
        let path = self.path(path).to_str().unwrap().to_owned();
        self.environment.push((name, path));
        self
    }

    fn environment(&self) -> EnvVars {
        self.environment.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }

    fn read(&self, explicit: Option<&str>) -> Result<(ConfigLocations, ConfigLayers), CliError> {
        let explicit = explicit.map(|path| self.path(path));
        let mut locations =
            ConfigLocations::find(&self.environment(), explicit.as_deref(), &self.path("work"))?;
        let layers = locations.read(&self.environment(), Table::new())?;
        Ok((locations, layers))
    }
}

#[track_caller]
fn check(disk: &Disk, explicit: Option<&str>, expected: Option<(&str, ConfigFileSource)>) {
    let (locations, layers) = disk.read(explicit).unwrap();
    let used = locations.used().map(|used| (used.path.clone(), used.by));
    assert_eq!(used, expected.map(|(path, by)| (disk.path(path), by)));
    assert_eq!(layers.file.map(|(path, _)| path), expected.map(|(path, _)| disk.path(path)));
}

const IN_CONFIG_FOLDER: &str = ".config/moothall/moothall.toml";

#[test]
fn the_configuration_file_is_searched_in_the_documented_order() {
    let all = [
        ("flag.toml", ""),
        ("variable.toml", ""),
        ("work/moothall.toml", ""),
        (IN_CONFIG_FOLDER, ""),
    ];
    let disk = Disk::new(&all).set(CONFIG_VARIABLE, "variable.toml");
    check(&disk, Some("flag.toml"), Some(("flag.toml", ConfigFileSource::Flag)));
    check(&disk, None, Some(("variable.toml", ConfigFileSource::Environment)));
    check(&Disk::new(&all), None, Some(("work/moothall.toml", ConfigFileSource::WorkingFolder)));
    check(&Disk::new(&all[3..]), None, Some((IN_CONFIG_FOLDER, ConfigFileSource::ConfigFolder)));
    check(&Disk::new(&[]), None, None);
}

#[test]
fn an_explicit_file_must_exist() {
    let hint = "hint: see `moothall config path` for the searched locations\n";
    let missing = |disk: &Disk, explicit, asked| {
        let path = disk.path("gone.toml");
        let expected = format!(
            "error: configuration file `{}` (from `{asked}`) does not exist\n{hint}",
            path.display()
        );
        assert_eq!(disk.read(explicit).unwrap_err().render(), expected);
    };
    let files = [("work/moothall.toml", "")];
    missing(&Disk::new(&files), Some("gone.toml"), "--config");
    missing(&Disk::new(&files).set(CONFIG_VARIABLE, "gone.toml"), None, CONFIG_VARIABLE);
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_that_names_it() {
    let disk = Disk::new(&[("work/moothall.toml/inner", "")]);
    let error = disk.read(None).unwrap_err().render();
    assert!(error.contains(disk.path("work/moothall.toml").to_str().unwrap()), "{error}");
}

#[test]
fn only_the_dotenv_file_beside_the_used_file_is_read() {
    let files =
        [("work/.env", "A=work"), (".config/moothall/.env", "A=config"), (IN_CONFIG_FOLDER, "")];
    let (locations, layers) = Disk::new(&files).read(None).unwrap();
    assert_eq!(locations.dotenv(), Some(locations.folders.config.join(".env")));
    assert_eq!(layers.dotenv, [("A", "config")].into_iter().collect());
    let (locations, layers) = Disk::new(&files[..2]).read(None).unwrap();
    assert_eq!((locations.dotenv(), layers.dotenv), (None, EnvVars::default()));
}

#[test]
fn a_data_dir_in_dotenv_is_relative_to_it_and_the_environment_wins() {
    let files = [
        (".config/moothall/moothall.toml", ""),
        (".config/moothall/.env", "MOOTHALL_DATA_DIR=data"),
    ];
    let folders = |disk: &Disk, data: &str| {
        let (locations, _) = disk.read(None).unwrap();
        assert_eq!(
            locations.folders,
            AppDirs::under(disk.path(".config/moothall"), &disk.path(data))
        );
    };
    folders(&Disk::new(&files), ".config/moothall/data");
    folders(&Disk::new(&files).set(DATA_DIR_VARIABLE, "elsewhere"), "elsewhere");
}

/// The data directory is trusted and its images are executed, so a cloned repository must not
/// supply its own.
#[test]
fn a_dotenv_file_in_the_working_directory_cannot_set_the_data_dir() {
    let files = [("work/moothall.toml", ""), ("work/.env", "MOOTHALL_DATA_DIR=data")];
    let error = Disk::new(&files).read(None).unwrap_err();
    let told = error.full_message();
    let expected = "the untrusted .env in the working directory sets the data directory";
    assert!(told.contains(expected), "{told}");
}
