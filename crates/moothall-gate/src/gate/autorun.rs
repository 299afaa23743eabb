//! Files that other programs load or run automatically: hooks, build scripts, agent and editor
//! settings. A worker that may only draft files could use them to run commands.
//!
//! To add an entry, append a line with the month in which it was added. `moothall policy check`
//! prints the list.

use std::sync::LazyLock;

use serde::Serialize;

use super::policy::PathGlobs;
use crate::drafts::RelPath;

/// A kind of file that is loaded or run automatically.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AutoRunEntry {
    /// Path pattern, in policy syntax.
    pub pattern: &'static str,
    /// The program that loads or runs the file.
    pub runner: &'static str,
    /// Month in which the entry was added.
    pub added: &'static str,
}

/// Returns the program that loads or runs a file automatically, if any. The first matching entry
/// wins.
pub fn auto_run_by(path: &RelPath) -> Option<&'static str> {
    static GLOBS: LazyLock<PathGlobs> = LazyLock::new(|| {
        PathGlobs::built_in(&AUTO_RUN.iter().map(|one| one.pattern).collect::<Vec<_>>())
    });
    let first = *GLOBS.matching(path).first()?;
    let entry = AUTO_RUN.iter().find(|one| one.pattern == first);
    Some(entry.map_or("another program", |one| one.runner))
}

macro_rules! auto_run {
    ($(since $added:literal: $($pattern:literal => $runner:literal,)*)*) => {
        /// All entries.
        pub const AUTO_RUN: &[AutoRunEntry] = &[$($(
            AutoRunEntry { pattern: $pattern, runner: $runner, added: $added },
        )*)*];
    };
}

auto_run! {
    since "2026-11":
    // Instructions and settings of coding agents.
    "**/{AGENTS,CLAUDE,GEMINI,AGENT,CONVENTIONS}{,.local}.md" => "coding agents",
    "**/.{claude,codex,gemini,cursor,windsurf,continue,aider,roo,kiro,opencode,amazonq}/**" => "coding agents",
    "**/.{cursorrules,windsurfrules,clinerules,goosehints,aider.conf.yml}" => "coding agents",
    "**/.clinerules/**" => "coding agents",
    "**/{.mcp,mcp,opencode,.mcp.local}.json" => "coding agents",
    // Editors and development containers.
    "**/.{vscode,idea,zed,fleet,nvim}/**" => "an editor that opens the directory",
    "**/.{exrc,nvimrc,vimrc,nvim.lua,dir-locals.el,editorconfig}" => "an editor that opens the file",
    "**/*.{code-workspace,sublime-project}" => "an editor that opens the directory",
    "**/.devcontainer/**" => "a development container",
    "**/{.devcontainer,devcontainer}.json" => "a development container",
    "**/.gitpod.y{a,}ml" => "a development container",
    "**/{devenv,shell,default}.nix" => "a development shell",
    "**/.{envrc,tool-versions,mise.toml,nvmrc,python-version,ruby-version,node-version}" => "a version manager or direnv",
    "**/{mise,.mise.local,devbox}.{toml,json}" => "a version manager",
    // Shells, logins and keys.
    "**/.{bash,zsh,ksh,tcsh,csh,fish}*" => "a shell",
    "**/.{profile,login,logout,inputrc,xinitrc,xprofile,netrc,pgpass,curlrc,wgetrc,screenrc,tmux.conf}" => "a shell or its tools",
    "**/.{ssh,gnupg,aws,kube,docker,config,local}/**" => "a shell or its tools",
    "**/{authorized_keys,known_hosts,id_rsa,id_dsa,id_ecdsa,id_ed25519}*" => "ssh",
    "**/*.{key,p12,pfx,jks,keystore,ppk}" => "programs that trust the key",
    // Version control.
    "**/.{gitattributes,gitmodules,gitconfig,lfsconfig,hgrc}" => "git",
    "**/.{husky,githooks,git-hooks}/**" => "git hooks",
    "**/{.,}{lefthook,lefthook-local}.{yml,yaml,toml,json}" => "git hooks",
    "**/.{pre-commit-config,overcommit}.y{a,}ml" => "git hooks",
    "**/.pre-commit-hooks.yaml" => "git hooks",
    "**/.{lintstagedrc,huskyrc,simple-git-hooks}{,.json,.js,.cjs,.mjs,.yml,.yaml}" => "git hooks",
    "**/{lint-staged,commitlint,simple-git-hooks}.config.{js,cjs,mjs,ts}" => "git hooks",
    // Continuous integration and deployment.
    "**/.{gitlab,circleci,buildkite,travis,woodpecker,drone,semaphore,gitea,forgejo,tekton,teamcity}/**" => "continuous integration",
    "**/.{gitlab-ci,travis,appveyor,drone,woodpecker,cirrus,readthedocs}{,.*}.y{a,}ml" => "continuous integration",
    "**/{appveyor,azure-pipelines,bitbucket-pipelines,buildspec,cloudbuild,codefresh,wercker,netlify,render}{,-*,.*}.{yml,yaml,toml}" => "continuous integration",
    "**/Jenkinsfile*" => "continuous integration",
    "**/.{cirrus.star,renovaterc,renovaterc.json,renovaterc.json5}" => "continuous integration",
    "**/{renovate.json,renovate.json5,dependabot.yml,vercel.json,fly.toml,Procfile}" => "continuous integration or deployment",
    "**/{docker-,}compose{,.*,-*}.y{a,}ml" => "docker compose",
    "**/{Containerfile*,.dockerignore,skaffold.yaml,Tiltfile,Vagrantfile,Chart.yaml,helmfile.yaml,kustomization.yaml}" => "container tools",
    "**/*.{tf,tfvars,tf.json,hcl,bicep}" => "terraform",
    "**/{ansible.cfg,Pulumi.yaml,serverless.yml,cdk.json}" => "deployment tools",
    "**/*.{service,timer,socket,desktop,plist}" => "the service manager",
    // Builds.
    "**/{GNUmakefile,BSDmakefile,makefile.*}" => "make",
    "**/*.{mk,mak,make}" => "make",
    "**/{,.}justfile" => "just",
    "**/*.just" => "just",
    "**/{Taskfile,taskfile}{,.dist}.y{a,}ml" => "task",
    "**/{CMakeLists.txt,CMakePresets.json,CMakeUserPresets.json,meson.build,meson_options.txt,configure,configure.ac,Makefile.am,Makefile.in,SConstruct,SConscript,wscript}" => "the build",
    "**/*.cmake" => "the build",
    "**/{BUILD,WORKSPACE,MODULE}{,.bazel}" => "bazel",
    "**/{.bazelrc,.buckconfig,BUCK,TARGETS,.bazelversion}" => "bazel",
    "**/.cargo/**" => "cargo",
    "**/rust-toolchain{,.toml}" => "rustup",
    "**/{gradlew,gradlew.bat,mvnw,mvnw.cmd}" => "gradle or maven",
    "**/gradle/**" => "gradle",
    "**/*.gradle{,.kts}" => "gradle",
    "**/{gradle.properties,gradle-wrapper.properties,maven-wrapper.properties,init.gradle}" => "gradle or maven",
    "**/.mvn/**" => "maven",
    "**/{Directory.Build,Directory.Packages}.{props,targets}" => "msbuild",
    "**/*.{targets,vcxproj,props,fsproj,vbproj,sln}" => "msbuild",
    "**/{Rakefile,rakefile,Gemfile,.rspec,.irbrc,.pryrc,Guardfile,Fastfile,Podfile}" => "ruby tools",
    "**/{magefile.go,.goreleaser.yml,.goreleaser.yaml,go.work}" => "go tools",
    "**/{build.zig,build.sbt,build.sc,build.xml,Build.PL,Makefile.PL,dune,dune-project,stack.yaml,Setup.hs,rebar.config}" => "the build",
    // Python.
    "**/{conftest,sitecustomize,usercustomize,noxfile,fabfile,setup}.py" => "python or its tools",
    "**/*.pth" => "python",
    "**/{tox.ini,pytest.ini,.coveragerc,.pylintrc,pip.conf,.pypirc,uv.toml,.pdbrc,hatch.toml}" => "python tools",
    // JavaScript.
    "**/{.yarnrc,.yarnrc.yml,.pnpmfile.cjs,pnpmfile.js,pnpm-workspace.yaml,.npmrc,bunfig.toml,lerna.json,nx.json,turbo.json}" => "node package managers",
    "**/.yarn/**" => "yarn",
    "**/{vite,vitest,webpack,rollup,babel,jest,next,nuxt,svelte,astro,tailwind,postcss,eslint,prettier,playwright,cypress,karma,metro,esbuild,rspack,remix,gatsby,gulp,stylelint,tsup,wdio,mocha}{,.*}.config.{js,cjs,mjs,ts,cts,mts,json}" => "JavaScript tools",
    "**/{gulpfile,Gruntfile,Jakefile}{,.babel,.esm}.{js,cjs,mjs,ts}" => "JavaScript tools",
    "**/.{babelrc,eslintrc,prettierrc,stylelintrc,mocharc,swcrc,postcssrc,nycrc}{,.*}" => "JavaScript tools",
    // Found in the second attack on the gate.
    "**/{QWEN,CRUSH,WARP}.md" => "coding agents",
    "**/AGENTS.*.md" => "coding agents",
    "**/{opencode.jsonc,crush.json,.crush.json,.rules,.roomodes}" => "coding agents",
    "**/{.Rprofile,.Renviron,.iex.exs,.ghci,.ocamlinit,.erlang,.octaverc,startup.m,.latexmkrc,latexmkrc,.irbrc,.replit}" => "an interpreter that starts in the directory",
    "**/{.dir-locals-2.el,.lvimrc,.lazy.lua}" => "an editor that opens the file",
    "**/{mise.*.toml,mise/config.toml,.autoenv*,devenv.local.nix,devenv.yaml}" => "a version manager or direnv",
    "**/{venv,env,virtualenv}/bin/**" => "python",
    "**/sitecustomize/**" => "python",
    "**/{binding.gyp,gems.rb,conanfile.py,*.sbt,.sbtopts,.jvmopts,build.mill,config.nims,*.nimble,project.clj,deps.edn,rebar.config.script,*.rsp,*.csproj.user,*.proj,*.slnx,build.ninja,xmake.lua,Tupfile,Jamroot,Jamfile,*.rake,*.cabal,dub.json,dub.sdl,PKGBUILD,hatch_build.py,tauri.conf.json}" => "the build",
    "**/*.xcodeproj/**" => "xcode",
    "**/{deps/build.jl,debian/rules,config/config.exs}" => "the build",
    "**/{pylintrc,mypy.ini,.flake8,pytest.toml,.pytest.toml,.pytest.ini,tox.toml,docs/conf.py,doc/conf.py,prek.toml}" => "python tools",
    "**/{vitest.workspace.*,*.conf.js,*.config.{js,cjs,mjs,ts,cts,mts},.commitlintrc*,.releaserc*,.pnpmfile.mjs,deno.jsonc}" => "JavaScript tools",
    "**/gulpfile.*/**" => "JavaScript tools",
    "**/{.php-cs-fixer*.php,phpunit.xml*,.simplecov,.formatter.exs,.credo.exs}" => "test and lint tools",
    "**/{action.yml,action.yaml,.build.yml,.zuul.yaml,.taskcluster.yml,codemagic.yaml,amplify.yml,.mergify.yml,serverless.*,kustomization.yml,helmfile.yml,skaffold.yml,wrangler.toml,wrangler.json*}" => "continuous integration or deployment",
    "**/{.htaccess,.user.ini,desktop.ini,*.url,*.lnk,*.library-ms}" => "a web server or the desktop",
    "**/.gitignore" => "git, to decide which files it shows",
    // Catch-all for programs that keep their settings in a hidden directory.
    "**/.*/**" => "a program that keeps its settings in a hidden directory",
}

#[cfg(test)]
#[path = "autorun_tests.rs"]
mod tests;
