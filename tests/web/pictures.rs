//! Both colour schemes, and the pictures of the pages of docs: `UPDATE_EXPECT=1` takes them again.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::browser::Page;
use crate::stage::Stage;

/// Maximum bytes of a picture in docs.
const MAX_BYTES: usize = 200_000;

/// Takes a picture for docs; without `UPDATE_EXPECT` the one that is there must be a small PNG.
fn take(page: &mut Page, name: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/pictures/{name}.png"));
    let picture = page.picture();
    assert!(
        picture.len() <= MAX_BYTES,
        "{name}: {} bytes",
        picture.len()
    );
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::create_dir_all(file.parent().expect("it is in a folder"))
            .expect("docs can be written to");
        fs::write(&file, &picture).expect("docs can be written to");
    }
    let kept = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert!(
        kept.starts_with(b"\x89PNG\r\n") && kept.len() <= MAX_BYTES,
        "{name}"
    );
    assert_eq!(kept[16..24], picture[16..24], "{name} has another size");
}

#[test]
fn pictures_of_docs_are_of_both_colour_schemes() {
    let stage = Stage::repo(json!({}));
    let mut page = stage.page();
    let ground = "getComputedStyle(document.body).backgroundColor";
    page.wait_for_text("nav", "Sources");
    page.view("#/tools/repo/get_file");
    page.wait_for_text(".detail h2", "get_file");
    page.scheme("light");
    assert_eq!(page.value(ground), "rgb(255, 255, 255)");
    take(&mut page, "web-tool-light");
    page.scheme("dark");
    assert_eq!(page.value(ground), "rgb(18, 22, 29)");
    take(&mut page, "web-tool-dark");
    page.assert_clean(&stage.origin());
}
