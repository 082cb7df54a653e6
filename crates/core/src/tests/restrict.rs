//! Wrappers around a broker: whatever they filter, none shows, finds or calls what the inner one refuses.

use broker_model::CallCode;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::fixture::{
    CALLER, Describe, MetaReplies, SearchOptions, context, fixture, json_of, request,
};
use crate::{Broker, Identity, Name, Restrict, StartMode, ToolItem};

const TOOLS: [&str; 3] = ["/a/deep/b/echo", "/a/echo", "/a/twin"];

/// Keeps the tools of [`TOOLS`] whose bit is set.
fn keeps(mask: usize) -> impl Fn(&Identity, &ToolItem) -> bool + Send + Sync {
    move |_, tool| {
        let at = TOOLS.iter().position(|path| *path == tool.path);
        at.is_some_and(|at| (mask >> at) & 1 == 1)
    }
}

fn names_any(text: &str, refused: &[&str]) -> bool {
    refused
        .iter()
        .any(|path| text.contains(&format!("\"{path}\"")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_stack_of_wrappers_lists_finds_or_calls_what_the_inner_one_refuses(
        masks in proptest::array::uniform3(0..8usize),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let broker = fixture(StartMode::Plain);
            broker.matches(0);
            broker.matches(1);
            let [inner, middle, outer] = masks;
            let stack = Restrict::new(broker.core.clone(), keeps(inner));
            let stack = Restrict::new(Restrict::new(stack, keeps(middle)), keeps(outer));
            let left = masks.iter().fold(7, |all, mask| all & mask);
            let (kept, refused): (Vec<usize>, Vec<usize>) = (0..3).partition(|at| left >> at & 1 == 1);
            let paths = |list: &[usize]| list.iter().map(|at| TOOLS[*at]).collect::<Vec<_>>();
            let (kept, refused) = (paths(&kept), paths(&refused));
            let listed = stack.items(&CALLER);
            assert_eq!(listed.iter().map(|tool| tool.path).collect::<Vec<_>>(), kept);
            let tree = json_of(&stack.tree(&CALLER, "/", 16).unwrap()).to_string();
            assert!(!names_any(&tree, &refused), "{tree}");
            let found = stack.found(&CALLER, "echo twin deep", SearchOptions::default()).unwrap();
            let found = json_of(&found);
            assert!(!names_any(&found.to_string(), &refused), "{found}");
            assert_eq!(found["children"].as_array().unwrap().len(), kept.len(), "{found}");
            assert!(!refused.contains(&"/a/twin") || !tree.contains("twin"), "{tree}");
            let all = TOOLS.map(str::to_owned);
            let many = json_of(&stack.described(&CALLER, Describe::Many(&all)).unwrap());
            for (at, path) in TOOLS.into_iter().enumerate() {
                let exists = kept.contains(&path);
                assert_eq!(many["entries"][at].get("error").is_none(), exists, "{many}");
                assert_eq!(stack.described(&CALLER, Describe::One(path)).is_ok(), exists);
                let by_path = stack.look_up(&CALLER, Name::Path(path));
                let flat = path[1..].replace('/', "-");
                let by_name = stack.look_up(&CALLER, Name::Flat(&flat, None));
                assert_eq!((by_path.is_ok(), by_name.is_ok()), (exists, exists), "{path}");
                let source = usize::from(path.contains("deep"));
                // A call finds what a look-up finds.
                let before = broker.sources[source].seen().len();
                if exists {
                    broker.sources[source].answer(Ok("{}"));
                }
                let context = context(&broker.core);
                let called = stack.call(request(&CALLER, context, path, json!({"text": ""}))).await;
                let code = called.as_ref().err().map(|error| error.code);
                assert_eq!(code, (!exists).then_some(CallCode::PathNotFound), "{path}");
                let sent = broker.sources[source].seen().len() - before;
                assert_eq!(sent, usize::from(exists), "{path}");
                if let Err(error) = called {
                    let details = error.details.clone().unwrap_or(Value::Null);
                    let others: Vec<&str> = refused.iter().copied().filter(|one| *one != path).collect();
                    assert!(!names_any(&json!([error.did_you_mean, details]).to_string(), &others));
                }
            }
            tokio::join!(stack.close(), stack.close());
            stack.close().await;
        });
    }
}
