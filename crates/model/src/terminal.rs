//! Text for a terminal of 80 columns without colour: [`Text`] escapes its arguments; the functions below
//! break lines between words and shorten names in the middle.

mod text;

pub use text::{Escaped, Part, Text, one_line};

/// Columns of a line.
pub const WIDTH: usize = 80;

/// Adds `text` to `out` in lines of at most [`WIDTH`], the first behind `first`, the others behind
/// `rest`. A span in backticks stays in one line if it fits, and a command always, since users copy it;
/// any other word that is longer than a line is broken.
pub(crate) fn wrap(out: &mut String, first: &str, rest: &str, text: &str) {
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in words(text, WIDTH.saturating_sub(rest.chars().count())) {
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
        if is_command(&word) {
            line.extend(word);
            is_empty = false;
            continue;
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

/// Whether a word is a command of the broker in backticks.
fn is_command(word: &[char]) -> bool {
    ["`broker-gen ", "`mcp-broker "].iter().any(|name| {
        let begin = word.iter().take(name.len());
        begin.copied().eq(name.chars())
    })
}

/// The words of a text. A span in backticks is one word, unless it has more than `most` characters and
/// is not a command.
fn words(text: &str, most: usize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut open = false;
    for word in text.split_whitespace() {
        match out.last_mut().filter(|_| open) {
            Some(last) => {
                last.push(' ');
                last.push_str(word);
            }
            None => out.push(word.to_owned()),
        }
        open ^= word.matches('`').count() % 2 == 1;
    }
    let parts = out.into_iter().flat_map(|word| {
        let letters: Vec<char> = word.chars().collect();
        let whole = letters.len() <= most || is_command(&letters);
        let split: Vec<String> = if whole {
            vec![word]
        } else {
            word.split(' ').map(str::to_owned).collect()
        };
        split
    });
    parts.collect()
}

fn end_line(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

/// One line as lines of at most `width` characters, broken after blanks, all but the first behind
/// `indent`. Unlike `wrap` it keeps every blank; each line ends.
pub fn fold(line: &str, width: usize, indent: &str) -> String {
    let mut out = String::with_capacity(line.len() + 1);
    let mut rest: Vec<char> = line.chars().collect();
    while rest.len() > width {
        let least = indent.chars().count() + 1;
        let at = rest[..width]
            .iter()
            .rposition(|c| *c == ' ')
            .filter(|at| *at > width / 2 && *at > least)
            .map_or(width, |at| at + 1);
        let tail = rest.split_off(at);
        out.extend(rest);
        out.push('\n');
        rest = indent.chars().chain(tail).collect();
    }
    out.extend(rest);
    out.push('\n');
    out
}

/// `text` with `…` in the middle if it has more than `most` characters.
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
    fn wrapped_line_fits_the_width_and_keeps_every_word() {
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
    fn wrapped_command_stays_on_one_line() {
        let mut out = String::new();
        let text = "review what the server says now, and then run `broker-gen lock --source /a`, and commit";
        wrap(&mut out, "help: ", "      ", text);
        assert_eq!(
            out,
            "help: review what the server says now, and then run\n      `broker-gen lock --source /a`, and commit\n"
        );
        let mut out = String::new();
        let command = format!("`broker-gen lock {}`,", "--source /a ".repeat(8).trim_end());
        wrap(
            &mut out,
            "help: ",
            "      ",
            &format!("run {command} and commit"),
        );
        assert_eq!(
            out,
            format!("help: run\n      {command}\n      and commit\n")
        );
        let mut out = String::new();
        wrap(&mut out, "", "", &format!("`{}` ` x", "long ".repeat(40)));
        assert!(out.lines().all(|line| line.len() <= WIDTH), "{out}");
    }

    #[test]
    fn folded_line_keeps_every_character() {
        assert_eq!(fold("short", 80, "  "), "short\n");
        let words = "+ ".to_owned() + &"word ".repeat(40);
        let text = fold(&words, WIDTH, "+     ");
        let fits = |line: &str| line.chars().count() <= WIDTH && line.starts_with('+');
        assert!(text.lines().all(fits), "{text}");
        let text = fold(&"ü".repeat(200), WIDTH, "  ");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
        assert_eq!(text.matches('ü').count(), 200);
    }

    #[test]
    fn shortened_name_keeps_both_ends() {
        assert_eq!(middle("/a/b/c/d/e", 7), "/a/…d/e");
        assert_eq!(middle("/a", 7), "/a");
    }
}
