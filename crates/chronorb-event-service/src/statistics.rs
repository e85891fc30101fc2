//! The state of a channel, as its clients ask for it.

use chronorb::{SystemException, SystemExceptionKind};

use crate::idl::chronorb_events::{ChannelStatisticsBuf, MonitoredChannel};

/// Asks a channel for its state with all its clients, page by page, until it has told `most` of
/// them.
///
/// # Errors
/// Those of any call.
pub fn all_statistics(
    channel: &MonitoredChannel,
    most: usize,
) -> Result<ChannelStatisticsBuf, SystemException> {
    let mut all = channel.statistics()?;
    while all.consumers.len() + all.suppliers.len() < most {
        let consumer = all.consumers.last().map_or(0, |it| it.number);
        let supplier = all.suppliers.last().map_or(0, |it| it.number);
        let next = match channel.statistics_after(consumer, supplier) {
            // A channel of an earlier version tells all at once.
            Err(exception) if exception.kind == SystemExceptionKind::BadOperation => break,
            next => next?,
        };
        if next.consumers.is_empty() && next.suppliers.is_empty() {
            break;
        }
        all.consumers.extend(next.consumers);
        all.suppliers.extend(next.suppliers);
    }
    Ok(all)
}
