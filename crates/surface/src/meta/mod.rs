//! The three meta-tools, independent of a transport: the JSON bodies that they take, the requests
//! to core that follow from them, and the reply of `meta_call`.

mod arguments;
mod ask;
mod asked_job;
mod call_body;
pub mod caller_meta;
mod fields;
mod listed;
mod members;
mod named_call;
mod reply;

pub use ask::{Listing, MetaCaller, ReplyRoom, SplitCall, read_args};
pub use fields::{BodyForm, RetrieveBody};
pub use listed::{DescriptionForm, Listed, ListingAnswer};
pub use members::{is_quoted_object, similar_names};
pub use reply::{charged, reply, with_warnings};
