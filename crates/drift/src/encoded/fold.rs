//! Characters that look like a Latin letter, mapped to that letter.

/// The lower-case Latin letter that this looks like; itself in lower case if there is none.
pub fn folded(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    if let Some(latin) = styled(c) {
        return latin;
    }
    let of_pairs = |pairs: &str| {
        let mut pairs = pairs.chars();
        while let (Some(look), Some(latin)) = (pairs.next(), pairs.next()) {
            if look == c {
                return Some(latin);
            }
        }
        None
    };
    of_pairs(ALIKE).unwrap_or_else(|| c.to_lowercase().next().unwrap_or(c))
}

/// A character and its look-alike letter, in turn: Cyrillic, Greek, Armenian, Cherokee, others.
const ALIKE: &str = "аaАaВbеeЕeіiІiјjЈjкkКkмmМmнhНhоoОoрpРpсcСcтtТtуyУyхxХxѕsЅsԁdԛqԝwһhҺhӏlӀlԌgѵvѴv\
αaΑaΒbΕeεeΖzηnΗhιiΙiκkΚkΜmΝnνvοoΟoρpΡpτtΤtυuΥyΧxχxγyϲcϳj\
օoսuհhոnԼl\
ᎪaᏴbᏟcᎠdᎬeᏀgᎻhᎥiᎫjᏦkᏞlᎷmᏢpᏒrᏚsᎢtᏙvᎳwᏃz\
ıiɡgɑaʟlᴏoѡwꮯcꮪs";

/// Full-width, mathematical and circled letters and digits.
fn styled(c: char) -> Option<char> {
    let code = u32::from(c);
    let letter = |offset: u32| char::from_u32(u32::from('a') + offset % 26);
    match code {
        0xff01..=0xff5e => char::from_u32(code - 0xff01 + 0x21).map(|c| c.to_ascii_lowercase()),
        0x1_d400..=0x1_d6a3 => letter(code - 0x1_d400),
        0x1_d7ce..=0x1_d7ff => char::from_digit((code - 0x1_d7ce) % 10, 10),
        0x24b6..=0x24e9 => letter(code - 0x24b6),
        0x1_f130..=0x1_f149 => letter(code - 0x1_f130),
        _ => None,
    }
}

/// A script with letters that look Latin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Script {
    Latin,
    Cyrillic,
    Greek,
    Armenian,
    Cherokee,
    /// Letters that occur only in styled text.
    Styled,
}

impl Script {
    /// The script of a letter; `None` for other characters and other scripts.
    pub fn find(c: char) -> Option<Self> {
        match c {
            'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' => Some(Self::Latin),
            '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' if c.is_alphabetic() => {
                Some(Self::Greek)
            }
            '\u{400}'..='\u{52f}' => Some(Self::Cyrillic),
            '\u{531}'..='\u{587}' => Some(Self::Armenian),
            '\u{13a0}'..='\u{13ff}' | '\u{ab70}'..='\u{abbf}' => Some(Self::Cherokee),
            c if styled(c).is_some_and(char::is_alphabetic) => Some(Self::Styled),
            _ => None,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Latin => "Latin",
            Self::Cyrillic => "Cyrillic",
            Self::Greek => "Greek",
            Self::Armenian => "Armenian",
            Self::Cherokee => "Cherokee",
            Self::Styled => "styled",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alike_character_is_folded_to_latin() {
        let fold = |text: &str| text.chars().map(folded).collect::<String>();
        assert_eq!(fold("Іgnоrе"), "ignore");
        assert_eq!(fold("ＩＧＮＯＲＥ"), "ignore");
        assert_eq!(fold("𝐢𝗴𝘯𝙤𝓻𝕖 ⓘ"), "ignore i");
        assert_eq!(fold("Ωmega é 日"), "ωmega é 日");
        assert_eq!(Script::find('о'), Some(Script::Cyrillic));
        assert_eq!(Script::find('é'), Some(Script::Latin));
        assert_eq!(Script::find('µ'), None);
    }

    #[test]
    fn sign_of_a_script_is_no_letter_of_it() {
        assert_eq!(Script::find('α'), Some(Script::Greek));
        assert_eq!(Script::find('\u{37e}'), None, "a question mark");
    }
}
