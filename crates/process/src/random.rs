//! Random numbers from the system.

/// Returns sixty-four unpredictable bits.
///
/// # Panics
///
/// Panics if the system gives no random bytes, as a `HashMap` would.
pub fn random_u64() -> u64 {
    match getrandom::u64() {
        Ok(bits) => bits,
        Err(error) => panic!("the system gives no random bytes: {error}"),
    }
}
