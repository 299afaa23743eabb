//! TypeScript declarations of types and their dependencies, compared with a committed file. The
//! server's tests include the same file.

use std::collections::BTreeMap;

use ts_rs::{Config, TS, TypeVisitor};

pub(crate) struct Declarations {
    config: Config,
    found: BTreeMap<String, String>,
}

impl TypeVisitor for Declarations {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        // Only types with an output file have a name.
        if T::output_path().is_none() || self.found.contains_key(&T::ident(&self.config)) {
            return;
        }
        let docs = T::docs().map(|docs| format!("{}\n", docs.trim_end())).unwrap_or_default();
        let declared = T::decl(&self.config);
        self.found.insert(T::ident(&self.config), format!("{docs}export {declared}\n"));
        T::visit_dependencies(self);
    }
}

impl Default for Declarations {
    fn default() -> Self {
        Self { config: Config::new().with_large_int("number"), found: BTreeMap::new() }
    }
}

impl Declarations {
    /// Compares the declarations with the committed file below `web/src/gen`, or writes it on
    /// request.
    #[track_caller]
    pub(crate) fn check(self, file: &str, header: &str) {
        let path = format!("{}/../../web/src/gen/{file}", env!("CARGO_MANIFEST_DIR"));
        let declared = self.found.into_values();
        let fresh = [header.to_owned()].into_iter().chain(declared).collect::<Vec<_>>().join("\n");
        if std::env::var_os("MOOTHALL_CODEGEN").is_some() {
            fs_err::write(path, fresh).unwrap();
            return;
        }
        let committed = fs_err::read_to_string(path).unwrap_or_default();
        assert_eq!(committed, fresh, "hint: `cargo xtask codegen` writes web/src/gen/{file}");
    }
}
