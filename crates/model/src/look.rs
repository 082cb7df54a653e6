//! The forms of a name for comparisons: the form NFKC of Unicode, and the skeleton of UTS 39. Names that look the same
//! have the same skeleton.

use std::borrow::Cow;

use icu_normalizer::ComposingNormalizerBorrowed;
use unicode_security::confusable_detection::skeleton as prototypes;

const NFC: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfc();
const NFKC: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfkc();

/// Whether a text is in the form NFKC.
pub fn is_nfkc(text: &str) -> bool {
    text.is_ascii() || NFKC.is_normalized(text)
}

/// The form NFKC of a text: full-width letters become ordinary ones, and a letter with a mark becomes one character.
pub fn nfkc(text: &str) -> Cow<'_, str> {
    match text.is_ascii() {
        true => Cow::Borrowed(text),
        false => NFKC.normalize(text),
    }
}

/// The form NFC of a text: a letter with a mark becomes one character.
pub fn nfc(text: &str) -> Cow<'_, str> {
    match text.is_ascii() {
        true => Cow::Borrowed(text),
        false => NFC.normalize(text),
    }
}

/// The skeleton of the form NFKC of a text. Two texts that a reader may mistake for each other have the same one.
pub fn skeleton(text: &str) -> String {
    prototypes(&nfkc(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_have_one_skeleton() {
        for (one, other) in [
            ("delete_file", "dеlеtе_filе"),
            ("delete_file", "ｄｅｌｅｔｅ_file"),
            ("café", "cafe\u{301}"),
            ("scope", "ѕсоре"),
            ("list_1", "list_l"),
            ("modern", "rnodern"),
            ("a\u{200b}b", "ab"),
        ] {
            assert_eq!(skeleton(one), skeleton(other), "{one} {other}");
        }
        assert_ne!(skeleton("read"), skeleton("write"));
    }

    #[test]
    fn form_nfkc_joins_marks_and_narrows_letters() {
        assert_eq!(nfkc("ｒｅａｄ＿ｆｉｌｅ"), "read_file");
        assert_eq!(nfkc("cafe\u{301}"), "café");
        assert!(is_nfkc("查询天气") && is_nfkc("café") && !is_nfkc("cafe\u{301}"));
    }
}
