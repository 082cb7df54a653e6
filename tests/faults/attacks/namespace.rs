//! Binds beyond loopback, in a network namespace whose addresses no other machine reaches.

use harness::again;

use super::Target;

/// Set for the process within the namespace.
const INSIDE: &str = "TEST_RUNS_IN_A_NAMESPACE";
/// Lets the test pass where the kernel refuses namespaces.
const WITHOUT: &str = "CI_NO_NAMESPACES";
/// Addresses for documentation (RFC 5737, RFC 3849).
const ADDRESSES: [&str; 2] = ["192.0.2.1:0", "[2001:db8::1]:0"];
/// Gives the namespace its addresses, then runs the test.
const ENTER: &str = "PATH=$PATH:/usr/sbin:/sbin && ip link set lo up && ip address add 192.0.2.1/24 dev lo && \
                     ip address add 2001:db8::1/64 dev lo nodad && exec \"$0\" \"$@\"";

#[test]
fn attacks_beyond_loopback_have_the_outcomes_of_loopback() {
    if std::env::var_os(INSIDE).is_some() {
        let loopback = Target::on("127.0.0.1:0").attack();
        for address in ADDRESSES {
            assert_eq!(Target::on(address).attack(), loopback, "{address}");
        }
        return;
    }
    let entered = harness::Run::new("unshare".as_ref())
        .args(["-r", "-n", "true"])
        .output();
    if entered.code != Some(0) {
        let is_allowed = std::env::var(WITHOUT).is_ok_and(|value| value == "1");
        assert!(
            is_allowed,
            "the kernel refuses network namespaces (`unshare -r -n`): {}allow them, or set {WITHOUT}=1 to leave out the attacks beyond loopback",
            entered.stderr
        );
        return;
    }
    let test = "attacks_beyond_loopback_have_the_outcomes_of_loopback";
    let output = again(module_path!(), test)
        .env(INSIDE, "1")
        .through("unshare", &["-r", "-n", "/bin/sh", "-c", ENTER])
        .output();
    assert!(
        output.code == Some(0) && output.stdout.contains("1 passed"),
        "{}{}",
        output.stdout,
        output.stderr
    );
}
