//! Every class of drift through the real broker: a plain start, a start with `--ignore-broken-tool`,
//! and a re-check while running. `row` has the table and the conditions of each row; the rows are in
//! the files beside it.

mod calls;
mod replies;
mod row;
mod serving;
mod sources;
mod storm;
mod withdrawing;
