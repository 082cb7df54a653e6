//! The client and the server of this package with each other: what the tests of the areas rely on.

use std::path::Path;

use harness::Run;

#[test]
fn client_lists_the_tools_of_the_server_in_both_eras() {
    for era in ["legacy", "modern"] {
        let output = Run::new(Path::new(env!("CARGO_BIN_EXE_oracle-client")))
            .args([era, env!("CARGO_BIN_EXE_oracle-server")])
            .output();
        assert_eq!(output.code, Some(0), "{era}: {}", output.stderr);
        assert!(
            output.stdout.contains("\"echo\""),
            "{era}: {}",
            output.stdout
        );
    }
}
