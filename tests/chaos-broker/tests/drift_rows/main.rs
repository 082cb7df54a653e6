//! Every class of drift through the real broker: a plain start, a start with `--ignore-broken-tool`,
//! and a re-check at noon. `row` holds the table and what each row must show; the rows stand in the
//! files beside it.

mod calls;
mod look;
mod row;
mod serving;
mod sources;
mod storm;
mod withdrawing;
