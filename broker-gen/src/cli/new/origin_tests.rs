//! The origin of a working copy, from files of git as clones, worktrees and cargo make them.

use std::fs;
use std::path::Path;

use super::origin::{public_url, read};

const OLD: &str = "0123456789012345678901234567890123456789";
const NEW: &str = "abcdefabcdefabcdefabcdefabcdefabcdefabcd";

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn config(url: &str) -> String {
    format!(
        "[core]\n\tbare = false\n[remote \"other\"]\n\turl = https://other.org/x/y\n[remote \"origin\"]\n\turl = {url}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\turl = no\n"
    )
}

#[test]
fn origin_url_is_public_and_has_no_user() {
    for (url, public) in [
        ("https://host.org/a/b.git", Some("https://host.org/a/b.git")),
        (
            "https://me:ghp_secret@host.org/a/b",
            Some("https://host.org/a/b"),
        ),
        (
            "https://me:p@ss@host.org:8443/a/b/",
            Some("https://host.org:8443/a/b"),
        ),
        ("http://host.org/a/b?token=x#y", Some("http://host.org/a/b")),
        ("git@host.org:a/b.git", Some("https://host.org/a/b.git")),
        ("host.org:a/b", Some("https://host.org/a/b")),
        ("ssh://git@host.org:2222/a/b", Some("https://host.org/a/b")),
        ("git://host.org/a/b", Some("https://host.org/a/b")),
        ("https://me:p/ss@host.org/a", None),
        ("/home/me/repo", None),
        ("../repo", None),
        ("./a:b/c", None),
        ("file:///home/me/repo", None),
        ("https://host.org", None),
        ("https://host.org/a\"b", None),
        ("ext::sh -c x", None),
        ("", None),
    ] {
        assert_eq!(public_url(url).as_deref(), public, "{url}");
    }
}

#[test]
fn origin_of_a_clone_has_its_commit_and_is_watched() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(
        root,
        ".git/config",
        &config("https://me:secret@host.org/a/b"),
    );
    write(root, ".git/HEAD", "ref: refs/heads/main\n");
    write(
        root,
        ".git/packed-refs",
        &format!(
            "# pack-refs with: peeled\n{NEW} refs/heads/not/main\n{OLD} refs/heads/main\n^{NEW}\n"
        ),
    );
    fs::create_dir_all(root.join(".git/refs/heads")).unwrap();
    let packed = read(root);
    assert_eq!(packed.url.as_deref(), Some("https://host.org/a/b"));
    assert_eq!(packed.revision.as_deref(), Some(OLD));
    for file in ["HEAD", "config", "packed-refs", "refs/heads"] {
        assert!(
            packed.watched.contains(&root.join(".git").join(file)),
            "{file}"
        );
    }
    write(root, ".git/refs/heads/main", &format!("{NEW}\n"));
    let loose = read(root);
    assert_eq!(loose.revision.as_deref(), Some(NEW));
    assert!(loose.watched.contains(&root.join(".git/refs/heads/main")));
    write(root, ".git/HEAD", OLD);
    assert_eq!(read(root).revision.as_deref(), Some(OLD), "detached");
    write(root, ".git/HEAD", "ref: refs/../../../etc/passwd");
    assert_eq!(read(root).revision, None);
}

#[test]
fn origin_of_a_worktree_is_that_of_its_repository() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "main/.git/config", &config("git@host.org:a/b.git"));
    write(root, "main/.git/HEAD", "ref: refs/heads/main");
    write(root, "main/.git/refs/heads/work", NEW);
    write(root, "main/.git/worktrees/w/HEAD", "ref: refs/heads/work");
    write(root, "main/.git/worktrees/w/commondir", "../..\n");
    let git = root.join("main/.git/worktrees/w");
    write(root, "w/.git", &format!("gitdir: {}\n", git.display()));
    let origin = read(&root.join("w"));
    assert_eq!(origin.url.as_deref(), Some("https://host.org/a/b.git"));
    assert_eq!(origin.revision.as_deref(), Some(NEW));
}

#[test]
fn origin_of_a_checkout_of_cargo_is_the_url_that_it_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let db = root.join("git/db/b-0123");
    write(
        root,
        "git/db/b-0123/FETCH_HEAD",
        &format!("{OLD}\t\tbranch 'main' of https://me:secret@host.org/a/b\n"),
    );
    write(
        root,
        "git/checkouts/b-0123/0123456/.git/config",
        &config(&format!("file://{}", db.display())),
    );
    write(root, "git/checkouts/b-0123/0123456/.git/HEAD", OLD);
    let origin = read(&root.join("git/checkouts/b-0123/0123456"));
    assert_eq!(origin.url.as_deref(), Some("https://host.org/a/b"));
    assert_eq!(origin.revision.as_deref(), Some(OLD));
}

#[test]
fn folder_without_git_has_no_origin() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(read(folder.path()), super::origin::Origin::default());
}
