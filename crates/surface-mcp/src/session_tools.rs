//! The tools that a session in search mode has found. They are in its list under `DYNAMIC` routing. No other session
//! sees them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use broker_model::model_vendor::ModelVendor;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::tasks::listed::ListForm;
use broker_core::{Broker, Identity, ListedTool, ToolListChanges, ToolQuery};
use broker_observe::{Announcer, Changed};

/// The maximum number of tools in the list of a session in addition to the tools of the broker.
pub(super) const MAX_REGISTERED: usize = 64;

/// The registered tools of one session.
#[derive(Debug)]
pub(super) struct SessionTools {
    state: Mutex<State>,
    /// Counts the changes that are not announced with a call.
    changes: watch::Sender<u64>,
    announcer: Option<Announcer>,
}

#[derive(Debug, Default)]
struct State {
    /// In the order of their registration. The list has the same order.
    tools: Vec<Registered>,
    /// Counts registrations and calls.
    clock: u64,
    /// The open streams that announce changes.
    streams: usize,
    /// The numbers of tools that changed since the last announcement.
    unannounced: Changed,
}

/// A tool in the list of a session.
#[derive(Debug)]
struct Registered {
    /// Its flat name.
    name: &'static str,
    path: &'static str,
    /// When it was last found or called.
    used: u64,
}

/// The effect of a registration, by flat names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Registration {
    pub(super) added: Vec<&'static str>,
    pub(super) evicted: Vec<&'static str>,
}

/// An open stream that announces changes; it is closed when this is dropped.
#[derive(Debug)]
pub(super) struct AnnouncingStream(Arc<SessionTools>);

impl Drop for AnnouncingStream {
    fn drop(&mut self) {
        self.0.lock().streams -= 1;
    }
}

impl Registration {
    pub(super) const fn is_empty(&self) -> bool {
        self.added.is_empty() && self.evicted.is_empty()
    }
}

impl SessionTools {
    /// Returns the empty tools of a new session. The announcer runs a command after announcements.
    pub(super) fn new(announcer: Option<Announcer>) -> Self {
        Self {
            state: Mutex::default(),
            changes: watch::Sender::new(0),
            announcer,
        }
    }

    /// Adds the hits of a search to the list, the best first, by flat name and path. The least recently used tools
    /// leave a full list; among the tools of one search, the worst hit first.
    pub(super) fn register(&self, found: &[(&'static str, &'static str)]) -> Registration {
        let mut state = self.lock();
        let mut result = Registration::default();
        state.clock += found.len() as u64;
        for (rank, (name, path)) in (0..).zip(found.iter().copied()) {
            let used = state.clock - rank;
            match state.tools.iter_mut().find(|tool| tool.name == name) {
                Some(tool) => tool.used = used,
                None => {
                    state.tools.push(Registered { name, path, used });
                    result.added.push(name);
                }
            }
        }
        while state.tools.len() > MAX_REGISTERED {
            let places = state.tools.iter().enumerate();
            let Some((oldest, _)) = places.min_by_key(|(_, tool)| tool.used) else {
                break;
            };
            result.evicted.push(state.tools.remove(oldest).name);
        }
        state.unannounced.add(Changed {
            added: result.added.len(),
            removed: result.evicted.len(),
        });
        result
    }

    /// Notes a call of the tool at a path.
    pub(super) fn note_call(&self, path: &str) {
        let mut state = self.lock();
        state.clock += 1;
        let used = state.clock;
        if let Some(tool) = state.tools.iter_mut().find(|tool| tool.path == path) {
            tool.used = used;
        }
    }

    /// Whether a tool is in the list, by its flat name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.lock().tools.iter().any(|tool| tool.name == name)
    }

    /// The entries of the list that are served and exist for the caller, within the limits of a vendor, and without the
    /// schemas of results where a call may become a job.
    pub(super) fn listed(
        &self,
        broker: &impl Broker,
        identity: &Identity,
        (vendor, form): (Option<ModelVendor>, ListForm),
    ) -> Vec<ListedTool> {
        let names: Vec<_> = self.lock().tools.iter().map(|tool| tool.name).collect();
        listed_tools(broker, identity, (vendor, form), &names)
    }

    /// Removes the tools that are withdrawn or that the caller may not use any more, for as long as it runs.
    pub(super) async fn keep_current(
        &self,
        broker: &impl Broker,
        identity: &Identity,
        mut lists: ToolListChanges,
        end: &CancellationToken,
    ) {
        loop {
            tokio::select! {
                () = end.cancelled() => return,
                more = lists.next() => if !more {
                    return;
                },
            }
            self.remove_gone(broker, identity);
        }
    }

    fn remove_gone(&self, broker: &impl Broker, identity: &Identity) {
        let names: Vec<_> = self.lock().tools.iter().map(|tool| tool.name).collect();
        let there = listed_tools(broker, identity, (None, ListForm::default()), &names);
        let gone = |name| !there.iter().any(|tool| tool.name == name);
        let mut state = self.lock();
        let before = state.tools.len();
        // A tool that was registered in between was served a moment ago.
        state
            .tools
            .retain(|tool| !names.contains(&tool.name) || !gone(tool.name));
        let removed = before - state.tools.len();
        state.unannounced.add(Changed { added: 0, removed });
        drop(state);
        if removed > 0 {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// Announces a change on the stream of the session, if one is open.
    pub(super) fn announce_on_stream(&self) -> bool {
        let has_stream = self.lock().streams > 0;
        if has_stream {
            self.changes.send_modify(|count| *count += 1);
        }
        has_stream
    }

    /// Counts a stream that announces [`Self::changes`].
    pub(super) fn open_stream(self: &Arc<Self>) -> AnnouncingStream {
        self.lock().streams += 1;
        AnnouncingStream(Arc::clone(self))
    }

    /// The changes of the list that are announced on a stream, from now on.
    pub(super) fn changes(&self) -> ToolListChanges {
        self.changes.subscribe().into()
    }

    /// Must be called after a change was announced, or where it cannot be announced.
    pub(super) fn announced(&self) {
        let changed = std::mem::take(&mut self.lock().unannounced);
        if changed != Changed::default()
            && let Some(announcer) = &self.announcer
        {
            announcer.changed(changed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is valid after a panic: no change of it can panic halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the tools of these flat names that are served and exist for the caller.
fn listed_tools(
    broker: &impl Broker,
    identity: &Identity,
    (vendor, form): (Option<ModelVendor>, ListForm),
    names: &[&'static str],
) -> Vec<ListedTool> {
    let what = ToolQuery {
        vendor,
        without_output: form.without_output,
        task_support: form.task_support,
        names: Some(names),
        ..ToolQuery::default()
    };
    let page = broker.tools(identity, &what);
    page.map(|page| page.tools).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Different names of two letters.
    fn name(at: usize) -> &'static str {
        const LETTERS: &str = "aabacadaeafagahaiajakalamanaoapaqarasatauavawaxayazbbcbdbebfbgbhbibjbkblbmbnbobpbqbrbsbtbubvbwbxbybzccdcecfcgchcicjckclcmcncocpcqcrcsctcucvcwcxcycz";
        &LETTERS[2 * at..2 * at + 2]
    }

    fn tools() -> SessionTools {
        SessionTools::new(None)
    }

    fn pairs(range: std::ops::Range<usize>) -> Vec<(&'static str, &'static str)> {
        range.map(|at| (name(at), name(at))).collect()
    }

    #[test]
    fn least_recently_used_tool_leaves_a_full_list() {
        let tools = tools();
        let first = tools.register(&pairs(0..MAX_REGISTERED));
        assert_eq!((first.added.len(), first.evicted.len()), (64, 0));
        // The worst hit is found again, the one before it is called.
        assert!(tools.register(&pairs(63..64)).is_empty());
        tools.note_call(name(62));
        let next = tools.register(&pairs(64..66));
        assert_eq!(next.added, [name(64), name(65)]);
        assert_eq!(next.evicted, [name(61), name(60)]);
        assert!(tools.has(name(63)) && tools.has(name(62)) && !tools.has(name(61)));
    }

    #[test]
    fn call_of_a_tool_outside_the_list_does_not_add_it() {
        let tools = tools();
        tools.note_call("a");
        assert!(!tools.has("a"));
    }

    #[test]
    fn change_is_left_to_the_call_without_an_open_stream() {
        let tools = Arc::new(tools());
        assert!(!tools.announce_on_stream());
        let stream = tools.open_stream();
        assert!(tools.announce_on_stream());
        drop(stream);
        assert!(!tools.announce_on_stream());
    }
}
