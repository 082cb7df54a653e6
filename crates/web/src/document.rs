//! The page as one file for a lock.

/// Returns every file that a browser gets, for checks of all of them.
#[cfg(test)]
pub(crate) fn sources() -> Vec<&'static str> {
    super::FILES.iter().map(|file| file.text).collect()
}

/// Makes the document.
pub fn document() -> String {
    String::new()
}
