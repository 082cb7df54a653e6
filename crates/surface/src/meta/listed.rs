//! The answer of `meta_tree` and `meta_desc` as values, and its JSON.

use super::reply::with_warnings;
use broker_core::{
    Described, Description, FoundTools, Identity, Reply, Services, descriptions_json,
};

/// The answer to a listing.
#[derive(Debug)]
pub struct Listed {
    pub answer: ListingAnswer,
    /// What was not used of the request.
    pub warnings: Vec<&'static str>,
}

/// The values that a listing found.
#[derive(Debug)]
pub enum ListingAnswer {
    Tree(broker_core::Listing),
    /// A query, and its hits.
    Found(String, FoundTools),
    One(Description, DescriptionForm),
    /// The paths, and what each describes.
    Many(Vec<String>, Vec<Described>, DescriptionForm),
}

/// The members that a description of an MCP client has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptionForm {
    /// What helps to make a call.
    Short,
    Full,
}

impl Listed {
    /// Returns the JSON of the answer.
    pub fn into_reply(self, services: &Services, identity: &Identity) -> Reply {
        let reply = match self.answer {
            ListingAnswer::Tree(listing) => listing.reply(),
            ListingAnswer::Found(query, found) => Reply {
                body: found.json(&query),
                etag: None,
            },
            ListingAnswer::One(description, _) => description.into_reply(),
            ListingAnswer::Many(paths, described, _) => {
                let body = descriptions_json(&paths, &described, |one| one.json().into());
                // The tag does not depend on the states of sources.
                let is_stable = described.iter().flatten().all(Description::is_stable);
                let stable = match is_stable {
                    true => body.clone(),
                    false => descriptions_json(&paths, &described, |one| one.stable_json().into()),
                };
                Reply {
                    etag: Some(services.entity_tag(identity, &stable)),
                    body,
                }
            }
        };
        with_warnings(reply, &self.warnings)
    }
}
