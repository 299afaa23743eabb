//! Attacks that exist only in git: what a diff hides, what a repository configures, and what the
//! index or the object store pretends.

use super::repo::{Outcome, Repo, SOURCE, lines, token};
use super::{AttackCase, check_all};
use Outcome::{Accepted, NeedsPerson, Rejected};

const EVIL: &str = "main..evil";
const LAST: &str = "HEAD~1..HEAD";

fn secret() -> String {
    format!("{SOURCE}k = '{}'\n", token())
}

/// Moves a file and commits.
fn moved(repo: &Repo, from: &str, to: &str) -> Vec<&'static str> {
    fs_err::create_dir_all(repo.path(to).parent().unwrap()).unwrap();
    repo.git(&["mv", from, to]);
    repo.commit("move");
    vec![LAST]
}

/// Stages a harmless edit after the repository was prepared.
fn harmless(repo: &Repo) -> Vec<&'static str> {
    repo.write("z/a.py", SOURCE.replace("argv", "argv[1:]"));
    vec!["--worktree"]
}

const SHAPES: &[AttackCase] = &[
    ("rename over a protected name", NeedsPerson, |repo| moved(repo, "z/a.py", "x/Makefile")),
    ("rename of a protected file", NeedsPerson, |repo| moved(repo, "z/Makefile", "z/notes")),
    ("rename into a workflow", NeedsPerson, |repo| {
        moved(repo, "z/a.py", ".github/workflows/a.yml")
    }),
    ("rename that changes only case", NeedsPerson, |repo| moved(repo, "z/a.py", "z/A.py")),
    ("copy of a file beside a twin", NeedsPerson, |repo| {
        repo.write("Z/b.py", SOURCE);
        repo.commit("twin directory");
        vec![LAST]
    }),
    ("composed and decomposed name", NeedsPerson, |repo| {
        repo.commit_path("z/cafe\u{301}.py", "100644", b"a = 1\n");
        vec![EVIL]
    }),
    ("mode change", NeedsPerson, |repo| {
        repo.git(&["update-index", "--chmod=+x", "z/a.py"]);
        vec!["--staged"]
    }),
    ("mode that git does not define", NeedsPerson, |repo| {
        repo.commit_path("run", "100777", b"a = 1\n");
        vec![EVIL]
    }),
    ("new executable", NeedsPerson, |repo| {
        repo.commit_path("run", "100755", b"a = 1\n");
        vec![EVIL]
    }),
    ("link in place of a file", NeedsPerson, |repo| {
        repo.remove("z/a.py");
        repo.link("z/a.py", "Makefile");
        repo.commit("link");
        vec![LAST]
    }),
    ("link to the repository's own files", Rejected, |repo| {
        repo.commit_path("link", "120000", b".git/config");
        vec![EVIL]
    }),
    ("link that climbs through a directory", Rejected, |repo| {
        repo.commit_path("x/link", "120000", b"../z/../../secret");
        vec![EVIL]
    }),
    ("link with a credential as target", Rejected, |repo| {
        repo.commit_path("link", "120000", token().as_bytes());
        vec![EVIL]
    }),
    ("new submodule", NeedsPerson, |repo| {
        let head = repo.git(&["rev-parse", "HEAD"]);
        let tree = repo.tree_with(b"lib", "160000", &head);
        repo.commit_tree(&tree);
        vec![EVIL]
    }),
    ("submodule of a commit that does not exist", NeedsPerson, |repo| {
        let tree = repo.tree_with(b"lib", "160000", &"1".repeat(40));
        repo.commit_tree(&tree);
        vec![EVIL]
    }),
    ("submodule bump that .gitmodules hides", NeedsPerson, |repo| {
        let info = |digit: &str| format!("160000,{},lib", digit.repeat(40));
        repo.write(
            ".gitmodules",
            "[submodule \"lib\"]\n\tpath = lib\n\turl = ../x\n\tignore = all\n",
        );
        repo.git(&["add", ".gitmodules"]);
        repo.git(&["update-index", "--add", "--cacheinfo", &info("1")]);
        repo.git(&["commit", "--quiet", "-m", "submodule"]);
        repo.git(&["update-index", "--cacheinfo", &info("2")]);
        vec!["--staged"]
    }),
    ("submodule outside of the repository", Rejected, |repo| {
        let tree = repo.tree_with(b"../lib", "160000", &"1".repeat(40));
        repo.commit_tree(&tree);
        vec![EVIL]
    }),
    ("nested .git in a tree", Rejected, |repo| {
        repo.commit_path("x/.git/config", "100644", b"[core]\n");
        vec![EVIL]
    }),
    ("short name of .git", Rejected, |repo| {
        repo.commit_path("git~1/config", "100644", b"[core]\n");
        vec![EVIL]
    }),
    ("bare repository in a directory", NeedsPerson, |repo| {
        repo.commit_path("x/HEAD", "100644", b"ref: refs/heads/main\n");
        vec![EVIL]
    }),
    ("file below a directory with HEAD", NeedsPerson, |repo| {
        repo.write("x/HEAD", "ref: refs/heads/main\n");
        repo.commit("first");
        repo.write("x/objects/keep", "a\n");
        vec![]
    }),
    ("attributes that hide a file from diffs", NeedsPerson, |repo| {
        repo.write(".gitattributes", "*.py -diff linguist-generated\n");
        vec![]
    }),
    ("ignore rules", NeedsPerson, |repo| {
        repo.write(".gitignore", "*.py\n");
        vec![]
    }),
    ("forced build output", NeedsPerson, |repo| {
        repo.write("node_modules/x/index.js", "a = 1\n");
        repo.stage();
        vec!["--staged"]
    }),
    ("byte order mark", NeedsPerson, |repo| {
        repo.write("z/a.py", format!("\u{feff}{SOURCE}"));
        vec![]
    }),
    ("mixed line endings", NeedsPerson, |repo| {
        repo.write("z/a.py", SOURCE.replacen('\n', "\r\n", 2));
        vec![]
    }),
    ("lone carriage returns", NeedsPerson, |repo| {
        repo.write("z/b.py", "# harmless\rimport os\ros.remove('x')\r");
        vec![]
    }),
    ("huge binary", NeedsPerson, |repo| {
        repo.write("z/b.bin", vec![0_u8; 20 << 20]);
        repo.commit("huge");
        vec![LAST]
    }),
    ("small binary", Rejected, |repo| {
        repo.write("z/b.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
        repo.commit("binary");
        vec![LAST]
    }),
    ("pointer of Git LFS", NeedsPerson, |repo| {
        let text = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n";
        repo.write("z/b.psd", text);
        vec![]
    }),
    ("too many files", NeedsPerson, |repo| {
        for at in 0..21 {
            repo.write(&format!("x/f{at}.py"), "a = 1\n");
        }
        repo.commit("many");
        vec![LAST]
    }),
    ("credential in a file name", Rejected, |repo| {
        repo.write(&format!("z/{}.md", token()), "a\n");
        vec![]
    }),
    ("credential that a later commit removes", Rejected, |repo| {
        repo.write("z/a.py", secret());
        repo.commit("in");
        repo.write("z/a.py", SOURCE.replace("argv", "argv[1:]"));
        repo.commit("out");
        vec!["HEAD~2..HEAD"]
    }),
    ("credential in a file that a later commit deletes", Rejected, |repo| {
        repo.write("z/b.py", secret());
        repo.commit("in");
        repo.remove("z/b.py");
        repo.commit("out");
        vec!["HEAD~2..HEAD"]
    }),
    ("a path that is not UTF-8", Rejected, |repo| {
        repo.commit_path(b"a\xff.py", "100644", b"a = 1\n");
        vec![EVIL]
    }),
    ("a directory in place of a file", NeedsPerson, |repo| {
        repo.remove("z/a.py");
        repo.write("z/a.py/b.py", "a = 1\n");
        vec![]
    }),
];

const POLICIES: &[AttackCase] = &[
    ("policy edited", NeedsPerson, |repo| {
        repo.write(".moothall/policy.toml", "version = 1\n");
        vec![]
    }),
    ("policy deleted", NeedsPerson, |repo| {
        repo.write(".moothall/policy.toml", "version = 1\n");
        repo.commit("policy");
        repo.remove(".moothall/policy.toml");
        vec![]
    }),
    ("policy replaced by a link", NeedsPerson, |repo| {
        repo.write(".moothall/policy.toml", "version = 1\n");
        repo.commit("policy");
        repo.remove(".moothall/policy.toml");
        repo.link(".moothall/policy.toml", "../z/a.py");
        vec![]
    }),
    ("policy loosened in an earlier commit of the range", Rejected, |repo| {
        repo.write(".moothall/policy.toml", "version = 1\n[paths]\ndeny = [\"z/**\"]\n");
        repo.commit("policy");
        repo.write(".moothall/policy.toml", "version = 1\n");
        repo.commit("loosen");
        repo.write("z/a.py", SOURCE.replace("argv", "argv[1:]"));
        repo.commit("use");
        vec!["HEAD~2..HEAD"]
    }),
    ("policy in the base that loosens is not trusted", Rejected, |repo| {
        repo.write(".moothall/policy.toml", "version = 1\n[rules]\n\"path.home\" = \"allow\"\n");
        repo.commit("policy");
        repo.write("z/a.py", format!("{SOURCE}p = '/{}/ada/x'\n", "home"));
        vec![]
    }),
    ("configuration of Moothall", NeedsPerson, |repo| {
        repo.write("moothall.toml", "[budget]\nusd = 1\n");
        vec![]
    }),
];

const SETTINGS: &[AttackCase] = &[
    ("clean filter", Rejected, |repo| {
        repo.git(&["config", "filter.evil.clean", &repo.evil()]);
        repo.git(&["config", "filter.evil.smudge", &repo.evil()]);
        repo.write(".git/info/attributes", "* filter=evil\n");
        repo.write("z/a.py", secret());
        vec!["--worktree"]
    }),
    ("filter process", Accepted, |repo| {
        repo.git(&["config", "filter.evil.process", &repo.evil()]);
        repo.write(".git/info/attributes", "* filter=evil\n");
        harmless(repo)
    }),
    ("text converter", Rejected, |repo| {
        repo.write("z/a.py", secret());
        repo.commit("secret");
        repo.git(&["config", "diff.evil.textconv", &repo.evil()]);
        repo.write(".git/info/attributes", "* diff=evil\n");
        vec![LAST]
    }),
    ("external diff", Rejected, |repo| {
        repo.write("z/a.py", secret());
        repo.commit("secret");
        repo.git(&["config", "diff.external", &repo.evil()]);
        repo.git(&["config", "diff.evil.command", &repo.evil()]);
        repo.write(".git/info/attributes", "* diff=evil\n");
        vec![LAST]
    }),
    ("file system monitor", Rejected, |repo| {
        repo.write("z/a.py", secret());
        repo.git(&["config", "core.fsmonitor", &repo.evil()]);
        vec!["--worktree"]
    }),
    ("hooks", Accepted, |repo| {
        for name in ["post-index-change", "reference-transaction", "pre-commit", "post-checkout"] {
            let hook = format!(".git/hooks/{name}");
            repo.write(&hook, format!("#!/bin/sh\nexec {}\n", repo.evil()));
            crate::world::set_mode(&repo.path(&hook), 0o755);
        }
        harmless(repo)
    }),
    ("hooks elsewhere", Accepted, |repo| {
        fs_err::create_dir_all(repo.world.root().join("hooks")).unwrap();
        repo.git(&["config", "core.hooksPath", repo.world.root().join("hooks").to_str().unwrap()]);
        harmless(repo)
    }),
    ("included settings", Rejected, |repo| {
        let elsewhere = repo.world.root().join("elsewhere");
        fs_err::create_dir_all(elsewhere.join("z")).unwrap();
        let text = format!(
            "[core]\n\tworktree = {}\n\tfsmonitor = {}\n",
            elsewhere.display(),
            repo.evil()
        );
        fs_err::write(repo.world.root().join("more"), text).unwrap();
        repo.write("z/a.py", secret());
        repo.git(&["config", "include.path", repo.world.root().join("more").to_str().unwrap()]);
        vec!["--worktree"]
    }),
    ("settings of the user", Rejected, |repo| {
        let text = format!("[diff]\n\texternal = {0}\n[core]\n\tfsmonitor = {0}\n", repo.evil());
        fs_err::write(repo.world.root().join("home/.gitconfig"), text).unwrap();
        repo.write("z/a.py", secret());
        vec!["--worktree"]
    }),
    ("orders, renames and submodules by settings", Rejected, |repo| {
        repo.write("z/a.py", secret());
        repo.commit("secret");
        for setting in ["diff.orderFile", "diff.ignoreSubmodules"] {
            repo.git(&["config", setting, "all"]);
        }
        repo.git(&["config", "core.quotePath", "false"]);
        vec![LAST]
    }),
    ("promised objects from a program", NeedsPerson, |repo| {
        repo.write("z/b.py", "a = 1\n");
        repo.commit("more");
        let id = repo.git(&["rev-parse", "HEAD:z/b.py"]);
        repo.remove(&format!(".git/objects/{}/{}", &id[..2], &id[2..]));
        repo.git(&["config", "remote.evil.url", &format!("ext::{}", repo.evil())]);
        repo.git(&["config", "remote.evil.promisor", "true"]);
        repo.git(&["config", "extensions.partialClone", "evil"]);
        repo.git(&["config", "protocol.ext.allow", "always"]);
        vec![LAST]
    }),
];

const PRETENCES: &[AttackCase] = &[
    ("replaced blob", Rejected, |repo| {
        repo.write("z/a.py", secret());
        repo.commit("secret");
        let bad = repo.git(&["rev-parse", "HEAD:z/a.py"]);
        let good = repo.blob(SOURCE.replace("argv", "argv[1:]").as_bytes());
        repo.git(&["replace", &bad, &good]);
        vec![LAST]
    }),
    ("replaced commit", Rejected, |repo| {
        repo.write("z/a.py", secret());
        repo.commit("secret");
        repo.git(&["replace", "HEAD", "HEAD~1"]);
        vec!["main~1..main"]
    }),
    ("grafted history", Rejected, |repo| {
        repo.write("z/a.py", secret());
        repo.commit("secret");
        repo.git(&["branch", "side", "HEAD~1"]);
        let head = repo.git(&["rev-parse", "HEAD"]);
        let side = repo.git(&["rev-parse", "side"]);
        // Pretends that `side` was made from the bad commit, so that their common commit is bad.
        repo.write(".git/info/grafts", format!("{side} {head}\n"));
        vec!["side...main"]
    }),
    ("blob with other content than its name", NeedsPerson, |repo| {
        repo.write("z/b.py", "a = 1\n");
        repo.commit("one");
        repo.write("z/c.py", format!("k = '{}'\n", token()));
        repo.commit("two");
        let object = |name: &str| {
            let id = repo.git(&["rev-parse", &format!("HEAD:{name}")]);
            repo.path(&format!(".git/objects/{}/{}", &id[..2], &id[2..]))
        };
        let (good, bad) = (object("z/b.py"), object("z/c.py"));
        crate::world::set_mode(&bad, 0o644);
        fs_err::copy(good, bad).unwrap();
        vec![LAST]
    }),
    ("assumed unchanged", Rejected, |repo| {
        repo.git(&["update-index", "--assume-unchanged", "z/a.py"]);
        repo.write("z/a.py", secret());
        vec!["--worktree"]
    }),
    ("skipped in the worktree", Rejected, |repo| {
        repo.git(&["update-index", "--skip-worktree", "z/a.py"]);
        repo.write("z/a.py", secret());
        vec!["--worktree"]
    }),
    ("sparse checkout", Accepted, |repo| {
        repo.write("x/b.py", "a = 1\n");
        repo.commit("more");
        repo.git(&["sparse-checkout", "set", "--cone", "x"]);
        assert!(!repo.path("z/a.py").exists());
        repo.write("x/b.py", "a = 2\n");
        vec!["--worktree"]
    }),
    ("sparse index with a staged credential", Rejected, |repo| {
        repo.write("x/b.py", "a = 1\n");
        repo.commit("more");
        repo.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "x"]);
        let id = repo.blob(secret().as_bytes());
        repo.git(&["update-index", "--add", "--cacheinfo", &format!("100644,{id},z/a.py")]);
        vec!["--staged"]
    }),
    ("intention to add", Rejected, |repo| {
        repo.write("z/b.py", secret());
        repo.git(&["add", "--intent-to-add", "z/b.py"]);
        vec!["--worktree"]
    }),
    ("untracked file", Rejected, |repo| {
        repo.write("new/b.py", secret());
        vec!["--worktree"]
    }),
    ("staged, then reverted on disk", Rejected, |repo| {
        repo.write("z/a.py", secret());
        repo.stage();
        repo.write("z/a.py", SOURCE);
        vec!["--worktree"]
    }),
    ("deleted only in the index", NeedsPerson, |repo| {
        repo.git(&["rm", "--cached", "--quiet", "z/a.py"]);
        vec!["--worktree"]
    }),
    ("changed on disk with the old time and size", Rejected, |repo| {
        let long = format!("{}#{}\n", secret(), "x".repeat(40));
        repo.write("z/b.py", "#".repeat(long.len() - 1) + "\n");
        repo.commit("padded");
        let time = repo.path("z/b.py").metadata().unwrap().modified().unwrap();
        repo.write("z/b.py", long);
        let file = fs_err::OpenOptions::new().append(true).open(repo.path("z/b.py")).unwrap();
        file.file().set_modified(time).unwrap();
        vec!["--worktree"]
    }),
    ("nested repository on disk", NeedsPerson, |repo| {
        repo.git(&["init", "--quiet", "nested"]);
        repo.write("nested/a.py", secret());
        vec!["--worktree"]
    }),
    ("unfinished merge", NeedsPerson, |repo| {
        repo.git(&["checkout", "--quiet", "-b", "side"]);
        repo.write("z/a.py", SOURCE.replace("argv", "one"));
        repo.commit("one");
        repo.git(&["checkout", "--quiet", "main"]);
        repo.write("z/a.py", SOURCE.replace("argv", "two"));
        repo.commit("two");
        assert!(!repo.try_git(&["merge", "side"], &[]).0);
        vec!["--staged"]
    }),
    ("first commit", Rejected, |repo| {
        repo.git(&["checkout", "--quiet", "--orphan", "fresh"]);
        repo.write("z/b.py", secret());
        repo.stage();
        vec!["--staged"]
    }),
    ("many lines in many commits", NeedsPerson, |repo| {
        for at in 0..5 {
            repo.write(&format!("z/b{at}.py"), lines(100));
            repo.commit("part");
        }
        vec!["HEAD~5..HEAD"]
    }),
];

#[test]
fn shapes_that_only_git_has_are_judged_as_expected() {
    check_all(SHAPES);
}

#[test]
fn changes_of_the_policy_are_judged_as_expected() {
    check_all(POLICIES);
}

#[test]
fn settings_of_a_repository_neither_run_programs_nor_hide_changes() {
    check_all(SETTINGS);
}

#[test]
fn pretences_of_index_history_and_objects_are_seen_through() {
    check_all(PRETENCES);
    let all = SHAPES.len() + POLICIES.len() + SETTINGS.len() + PRETENCES.len();
    assert!(all >= 40, "{all}");
}

/// `git` must not come from the repository, whatever `PATH` says.
#[test]
fn a_git_program_in_the_repository_is_not_run() {
    let mut repo = Repo::new();
    fs_err::copy(repo.evil(), repo.path("git")).unwrap();
    let path = std::env::var("PATH").unwrap();
    let own = repo.path("").display().to_string();
    repo.world.set("PATH", &format!(".:ws:{own}:{path}"));
    let ran = repo.gate(&[]);
    assert_eq!(Outcome::of(&ran), NeedsPerson, "{ran}");
    assert!(!repo.marker().exists());
}
