//! The operations that a layer passes on unchanged.

/// Implements the named operations of [`Broker`](crate::Broker) by the broker in the field `$inner`:
/// `forward!(inner: services, list, describe, search, look_up, items, tools, callable_tools, listed_items, traces_calls,
/// jobs, health, close);`
/// A layer implements the others itself, and always `call`.
#[macro_export]
macro_rules! forward {
    ($inner:ident: $($operation:ident),+ $(,)?) => {
        $($crate::forward_operation!($inner $operation);)+
    };
}

/// Implements one operation for [`forward!`](crate::forward).
#[doc(hidden)]
#[macro_export]
macro_rules! forward_operation {
    ($inner:ident services) => {
        fn services(&self) -> &$crate::Services {
            self.$inner.services()
        }
    };
    ($inner:ident list) => {
        fn list(
            &self,
            identity: &$crate::Identity,
            path: &str,
            depth: u8,
        ) -> Result<$crate::Listing, Box<$crate::CoreError>> {
            self.$inner.list(identity, path, depth)
        }
    };
    ($inner:ident describe) => {
        async fn describe(
            &self,
            identity: &$crate::Identity,
            paths: &[&str],
            account: &$crate::Account,
        ) -> Result<Vec<$crate::Described>, Box<$crate::CoreError>> {
            self.$inner.describe(identity, paths, account).await
        }
    };
    ($inner:ident search) => {
        async fn search(
            &self,
            identity: &$crate::Identity,
            what: $crate::SearchQuery<'_>,
        ) -> Result<$crate::FoundTools, Box<$crate::CoreError>> {
            self.$inner.search(identity, what).await
        }
    };
    ($inner:ident look_up) => {
        fn look_up(
            &self,
            identity: &$crate::Identity,
            name: $crate::Name<'_>,
        ) -> Result<$crate::FoundItem, Box<$crate::CoreError>> {
            self.$inner.look_up(identity, name)
        }
    };
    ($inner:ident items) => {
        fn items(&self, identity: &$crate::Identity) -> Vec<$crate::ToolItem> {
            self.$inner.items(identity)
        }
    };
    ($inner:ident tools) => {
        fn tools(
            &self,
            identity: &$crate::Identity,
            what: &$crate::ToolQuery<'_>,
        ) -> Option<$crate::ToolPage> {
            self.$inner.tools(identity, what)
        }
    };
    ($inner:ident callable_tools) => {
        fn callable_tools(&self, identity: &$crate::Identity) -> Vec<$crate::CallableTool> {
            self.$inner.callable_tools(identity)
        }
    };
    ($inner:ident listed_items) => {
        fn listed_items(
            &self,
            identity: &$crate::Identity,
            kind: $crate::ItemKind,
        ) -> Vec<$crate::ListedItem> {
            self.$inner.listed_items(identity, kind)
        }
    };
    ($inner:ident traces_calls) => {
        fn traces_calls(&self) -> bool {
            self.$inner.traces_calls()
        }
    };
    ($inner:ident jobs) => {
        fn jobs(&self) -> Option<&std::sync::Arc<dyn $crate::JobDesk>> {
            self.$inner.jobs()
        }
    };
    ($inner:ident health) => {
        fn health(&self, identity: &$crate::Identity) -> $crate::Health {
            self.$inner.health(identity)
        }
    };
    ($inner:ident close) => {
        fn close(&self) -> impl Future<Output = ()> + Send {
            self.$inner.close()
        }
    };
}
