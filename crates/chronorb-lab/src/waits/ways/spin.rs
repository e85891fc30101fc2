//! Not waiting at all.

use std::io;

use rustix::net::RecvFlags;

use super::epoll::Set;
use super::{Got, Hot, Site};

pub(super) fn receive(site: &Site<'_>) -> io::Result<()> {
    let mut hot = Hot::new(site);
    loop {
        match hot.receive(RecvFlags::DONTWAIT)? {
            Got::Request => hot.reply()?,
            Got::Nothing => {}
            Got::End => return Ok(()),
        }
    }
}

/// What the set tells of the connection is known already, or will be by the next `recv`: it is for
/// the others.
pub(super) fn both(site: &Site<'_>) -> io::Result<()> {
    let set = Set::edge_triggered(site)?;
    let mut hot = Hot::new(site);
    loop {
        match hot.receive(RecvFlags::DONTWAIT)? {
            Got::Request => hot.reply()?,
            Got::Nothing => {
                set.look()?;
            }
            Got::End => return Ok(()),
        }
    }
}

pub(super) fn set(site: &Site<'_>) -> io::Result<()> {
    let set = Set::edge_triggered(site)?;
    let mut hot = Hot::new(site);
    loop {
        if !set.look()? {
            continue;
        }
        match hot.receive(RecvFlags::DONTWAIT)? {
            Got::Request => hot.reply()?,
            Got::Nothing => {}
            Got::End => return Ok(()),
        }
    }
}
