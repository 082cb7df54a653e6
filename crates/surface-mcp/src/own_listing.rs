//! The answers of the tools of the broker that list and describe, and of lists: an answer that is longer than its client
//! reads is recorded as refused.

use broker_core::{Account, Broker, Charge, CoreError, memory_error_for_request};
use broker_observe::UndecidedReads;
use broker_surface::meta::{Listing, MetaCaller};
use broker_wire::write::Text;
use broker_wire::{Era, RpcError};
use bytes::Bytes;

use super::{Client, listing_text, result};

/// Answers `meta_tree` or `meta_desc`.
pub(super) async fn answer(
    client: &Client<impl Broker>,
    asker: &MetaCaller<'_, impl Broker>,
    listing: Listing,
    arguments: Bytes,
    era: Era,
) -> Result<Text, Box<CoreError>> {
    decided(async {
        let listed = asker.list(listing, arguments).await?;
        let services = client.broker.services();
        let text = listing_text::listing(listed, services, &client.identity);
        charged(&text, asker.account, era)
    })
    .await
}

fn charged(text: &str, account: &Account, era: Era) -> Result<Text, Box<CoreError>> {
    let needed = result::MAX_OWN_COPIES * text.len();
    let mut charge = Charge::default();
    charge
        .cover(account, needed)
        .map_err(|full| Box::new(memory_error_for_request(full, needed, account)))?;
    Ok(Text::charged(result::own(text, era), charge))
}

/// Returns the answer with the receipt of its reads. If it is an error, its reads have its code.
pub(super) async fn decided(
    answer: impl Future<Output = Result<Text, Box<CoreError>>>,
) -> Result<Text, Box<CoreError>> {
    let (answer, reads) = UndecidedReads::collect(answer).await;
    match answer {
        Ok(text) => Ok(text.with_receipt(reads.receipt())),
        Err(error) => {
            reads.refuse(error.code);
            Err(error)
        }
    }
}

/// Returns the list with the receipt of its reads.
pub(super) fn decided_later(
    list: impl FnOnce() -> Result<Text, RpcError>,
) -> Result<Text, RpcError> {
    let (list, reads) = UndecidedReads::collect_sync(list);
    list.map(|text| text.with_receipt(reads.receipt()))
}
