//! The estimate of parsed JSON, compared with the memory that parsing takes: each shape is parsed in a
//! separate process, whose peak of memory is read before and after.

use std::fmt::Write;

use broker_model::json::{self, estimate};
use harness::again;

/// Bytes of each text: a body at its limit.
const TEXT_BYTES: usize = 4 << 20;
/// Pages of the program itself that parsing touches first, and the deviation of the kernel's counts, which each core
/// collects in batches.
const CODE_BYTES: u64 = 1 << 20;
/// Set to a file for the process that parses one shape.
const SHAPE: &str = "BROKER_TEST_SHAPE";

/// A text of about [`TEXT_BYTES`], made of `element`s in a list.
fn list(element: &str) -> String {
    let count = (TEXT_BYTES - 2) / (element.len() + 1);
    let elements = vec![element; count].join(",");
    format!("[{elements}]")
}

fn shapes() -> Vec<(&'static str, String)> {
    let nested = |open: &str, middle: &str, close: &str| {
        format!("{}{middle}{}", open.repeat(100), close.repeat(100))
    };
    let object = |members: usize, order: fn(usize) -> usize| {
        let mut text = String::from("{");
        for at in 0..members {
            let comma = if at == 0 { "" } else { "," };
            write!(text, "{comma}\"{:x}\":0", order(at)).expect("a string takes text");
        }
        text + "}"
    };
    // An odd factor permutes the numbers below a power of two.
    let scattered = |at: usize| (at * 40_503) % (1 << 18);
    vec![
        ("objects of one member", list(r#"{"":0}"#)),
        ("objects of two members", list(r#"{"":0,"a":{}}"#)),
        ("objects of twelve members", list(&object(12, |at| at))),
        ("objects of forty members", list(&object(40, |at| 40 - at))),
        ("one object in order", object(1 << 18, |at| at)),
        ("one object backwards", object(1 << 18, |at| (1 << 18) - at)),
        ("one object scattered", object(1 << 18, scattered)),
        ("empty lists", list("[]")),
        ("lists of one", list("[0]")),
        ("lists of five", list("[0,0,0,0,0]")),
        ("numbers", list("0")),
        ("short strings", list("\"a\"")),
        ("strings of 25", list(&format!("\"{}\"", "b".repeat(25)))),
        ("one string", format!("\"{}\"", "c".repeat(TEXT_BYTES - 2))),
        (
            "one string of escapes",
            format!("\"{}\"", "\\n".repeat(TEXT_BYTES / 2 - 1)),
        ),
        ("nested lists", list(&nested("[", "", "]"))),
        ("nested objects", list(&nested("{\"\":", "0", "}"))),
    ]
}

fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc is readable");
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    let kib: u64 = kib.and_then(|kib| kib.parse().ok()).expect("a number");
    kib << 10
}

#[test]
fn estimate_of_any_shape_is_not_below_what_parsing_takes() {
    if let Ok(path) = std::env::var(SHAPE) {
        return parse_one(&path);
    }
    for (index, (name, text)) in shapes().into_iter().enumerate() {
        let path = format!("{}/shape-{index}.json", env!("CARGO_TARGET_TMPDIR"));
        std::fs::write(&path, &text).expect("the directory can be written");
        let own = "estimate_of_any_shape_is_not_below_what_parsing_takes";
        let output = again(module_path!(), own).env(SHAPE, &path).output();
        let taken = std::fs::read_to_string(&path).ok();
        let taken = taken.and_then(|bytes| bytes.parse::<u64>().ok());
        let taken = taken.unwrap_or_else(|| panic!("{name}: {output:?}"));
        std::fs::remove_file(&path).expect("the file is there");
        let estimated = estimate(text.as_bytes()).bytes;
        assert!(
            estimated + CODE_BYTES >= taken,
            "{name}: {estimated} < {taken}"
        );
        // Small estimates cannot be distinguished from the memory of the rest of the process.
        assert!(
            taken < 8 << 20 || estimated <= 4 * taken,
            "{name}: {estimated} is far more than {taken}"
        );
    }
}

/// Parses the shape and writes in its place by how much the process grew at its peak.
fn parse_one(path: &str) {
    let text = std::fs::read_to_string(path).expect("the file is there");
    let resident = || {
        let statm = std::fs::read_to_string("/proc/self/statm").expect("/proc is readable");
        let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
        let pages: u64 = pages.expect("a number");
        pages * 4096
    };
    // Resets the peak, which so far is that of the start of the process.
    std::fs::write("/proc/self/clear_refs", "5").expect("the peak can be reset");
    let before = resident();
    let value = json::parse(&text).expect("it is JSON");
    let taken = peak_bytes().saturating_sub(before);
    std::hint::black_box(value);
    std::fs::write(path, taken.to_string()).expect("the file can be written");
}
