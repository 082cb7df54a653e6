//! Every class of drift through the real broker: a plain start, a start with `--ignore-broken-tool`,
//! and a re-check while running. `table` has the outcome of each class and the function that tests it; the
//! files beside it have the changes of a server, by class.

mod announcements;
mod calls;
mod replies;
mod serving;
mod sources;
mod table;
mod withdrawing;
