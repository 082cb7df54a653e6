//! Text for a terminal of 80 columns without colour: breaks lines between words, and shortens a name in
//! its middle. What it is given is printable already.

/// Columns that everything fits into.
pub const WIDTH: usize = 80;

/// Adds `text` to `out` in lines of at most [`WIDTH`], the first behind `first`, the others behind
/// `rest`. A word that fits no line is broken.
pub fn wrap(out: &mut String, first: &str, rest: &str, text: &str) {
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        let used = line.chars().count() + usize::from(!is_empty);
        if !is_empty && used + word.len() > WIDTH {
            end_line(out, &line);
            line = rest.to_owned();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        loop {
            let room = WIDTH.saturating_sub(line.chars().count()).max(1);
            let more = word.split_off(word.len().min(room));
            line.extend(word);
            is_empty = false;
            if more.is_empty() {
                break;
            }
            word = more;
            end_line(out, &line);
            line = rest.to_owned();
        }
    }
    end_line(out, &line);
}

fn end_line(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

/// `text` with `…` in its middle where it has more than `most` characters.
pub fn middle(text: &str, most: usize) -> String {
    let all: Vec<char> = text.chars().collect();
    if all.len() <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(1);
    let (head, tail) = (kept - kept / 2, kept / 2);
    let head: String = all[..head].iter().collect();
    let tail: String = all[all.len() - tail..].iter().collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_terminal_and_no_word_is_lost() {
        let words = format!("a {} b {} c", "x".repeat(200), "y ".repeat(100));
        let mut out = String::new();
        wrap(&mut out, "  help: ", "        ", &words);
        assert!(
            out.lines().all(|line| line.chars().count() <= WIDTH),
            "{out}"
        );
        assert!(out.starts_with("  help: a\n        xxx"), "{out}");
        let letters = |text: &str| {
            text.chars()
                .filter(|c| !c.is_whitespace())
                .collect::<String>()
        };
        assert_eq!(letters(&out), format!("help:{}", letters(&words)));
        let mut out = String::new();
        wrap(&mut out, "  - ", "    ", "");
        assert_eq!(out, "  -\n");
    }

    #[test]
    fn a_long_name_keeps_both_ends() {
        assert_eq!(middle("/a/b/c/d/e", 7), "/a/…d/e");
        assert_eq!(middle("/a", 7), "/a");
    }
}
