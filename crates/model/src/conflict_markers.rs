//! The markers that git leaves in a file with a merge conflict.

/// The beginnings of a line that is a marker.
const MARKERS: [&str; 4] = ["<<<<<<<", "|||||||", "=======", ">>>>>>>"];

/// The offset of the first marker. A line of JSON never begins like this, so that one marker is enough.
pub fn first_marker(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if MARKERS.iter().any(|marker| line.starts_with(marker)) {
            return Some(at);
        }
        at += line.len();
    }
    None
}

/// Returns both texts with markers around the lines that differ.
pub fn with_markers(ours: &str, theirs: &str) -> String {
    let ours: Vec<&str> = ours.lines().collect();
    let theirs: Vec<&str> = theirs.lines().collect();
    let same = |(one, other): &(&&str, &&str)| one == other;
    let start = ours.iter().zip(&theirs).take_while(same).count();
    let ends = ours[start..].iter().rev().zip(theirs[start..].iter().rev());
    let end = ends.take_while(same).count();
    let parts = [
        &ours[..start],
        &["<<<<<<< ours"],
        &ours[start..ours.len() - end],
        &["======="],
        &theirs[start..theirs.len() - end],
        &[">>>>>>> theirs"],
        &ours[ours.len() - end..],
    ];
    let mut text = parts.concat().join("\n");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marker_is_found_at_the_beginning_of_a_line_only() {
        assert_eq!(first_marker("a\r\n>>>>>>> x\r\n"), Some(3));
        assert_eq!(first_marker("=======\n"), Some(0));
        assert_eq!(first_marker(" <<<<<<< x\n\"=======\"\n"), None);
    }

    #[test]
    fn texts_have_markers_around_the_lines_that_differ() {
        let both = with_markers("a\nb\nc\n", "a\nx\ny\nc\n");
        let expected = "a\n<<<<<<< ours\nb\n=======\nx\ny\n>>>>>>> theirs\nc\n";
        assert_eq!(both, expected);
        let both = with_markers("a\n", "a\na\n");
        assert_eq!(both, "a\n<<<<<<< ours\n=======\na\n>>>>>>> theirs\n");
        assert_eq!(
            with_markers("", ""),
            "<<<<<<< ours\n=======\n>>>>>>> theirs\n"
        );
        assert_eq!(first_marker(&with_markers("a", "a")), Some(2));
    }
}
